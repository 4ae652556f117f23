"""Markdown tables of given data."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin import lexicon
from inference.builtin.scene import Scene, joined
from inference.builtin.words import Words

_ASK = (
    "(make|write|create|draw|give me|show me) a [Markdown] table with [the columns] {c}: {d}", "(put|turn|format|write) (this|these|the following) (into|as|in) a table with [the columns] {c}: {d}",
    "table of {c}: {d}", "(make|create) a table. Columns: {c}. (Rows|Data): {d}", "(can|could) you (make|create|draw) a table with {c} (from|for) this: {d}", "(a table|table) please, columns {c}: {d}",
    "(I need|I want) a table with {c}. (The data|Here is the data|The rows are): {d}", "{d}\n(make|create|write) a table with [the columns] {c}.", "(show|list) (this|these) as a table with {c}: {d}", "(tabulate|as a table) with columns {c}: {d}",
)  # fmt: skip
_HEADS = tuple(lexicon.COLUMNS.split())


def tables(scene: Scene) -> None:
    """A table of two to four columns and one to five rows."""
    rng, words = scene.rng, scene.words
    heads = rng.sample(_HEADS, rng.choices((2, 3, 4), (5, 3, 1))[0])
    rows = [[_cell(words, head) for head in heads] for _ in range(rng.randint(1, 5))]
    kind = rng.randrange(4)
    if kind == 0:
        data = "; ".join(", ".join(row) for row in rows)
    elif kind == 1:
        data = ", ".join(" ".join(row) for row in rows)
    elif kind == 2:
        data = "\n" + "\n".join(", ".join(row) for row in rows)
    else:
        data = ", ".join(f"{row[0]} ({', '.join(row[1:])})" for row in rows)
    columns = joined(heads) if rng.random() < 0.7 else ", ".join(heads)
    scene.ask(_ASK, wrap=False, c=columns, d=data)
    scene.about(None, "A table")
    scene.answer(table(heads, rows))


def _cell(words: Words, head: str) -> str:
    if head == "city":
        return words.city()
    if head in ("age", "count", "score", "number", "size", "weight", "price", "room"):
        return str(words.number(1, 9999))
    if head == "colour":
        return words.choice("COLOURS")
    if head == "time":
        return words.clock_time().replace(" ", "")
    if head == "code":
        return words.code()
    if head == "animal":
        return words.choice("ANIMALS").replace(" ", "-")
    if head == "food":
        return words.choice("FOODS").replace(" ", "-")
    if head == "country":
        return words.choice("COUNTRIES")
    if head in ("name", "owner"):
        return words.first_name()
    return words.rng.choice((words.coined(), words.choice("THINGS")))


def table(heads: list[str], rows: list[list[str]]) -> str:
    """The Markdown: header, rule, one line per row."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
