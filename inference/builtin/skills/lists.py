"""Markdown lists of given items."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene, joined
from inference.builtin.words import Words, plural

_BULLETS = (
    "(make|write|create|give me|show me) a [bullet|bulleted|bullet point] list (of|from|with) {x} [please].", "(list|itemise|itemize) {x} [please|as bullet points|as a list].",
    "(put|turn|format|write) {x} (into|as|in) a [bullet|bulleted] list [please].", "(bullet|bulleted) list (of|with|from|please): {x}", "(make|write) (these|the following|this) (into a list|a list|as a list): {x}",
    "(I need|I want|I'd like) a [bullet] list of {x}.", "(as a list|a list|list) [please]: {x}", "{x}\n(as a list|make a list|as bullet points|as a bullet list) [please]", "(my|our) [shopping|packing] list: {x}",
    "(can|could) you (make|write|create) a list (of|from|with) {x} [for me]?", "(use|with) bullet points: {x}", "make {x} a list [please].",
)  # fmt: skip
_NUMBERS = (
    "(make|write|create|give me|show me) a numbered list (of|from|with) {x} [please].", "(number|enumerate) {x} [please].", "(put|turn|format|write) {x} (into|as|in) a numbered list [please].",
    "numbered list (of|with|from|please): {x}", "(can|could) you (make|write|create) a numbered list (of|from|with) {x} [for me]?", "(as a numbered list|a numbered list|numbered) [please]: {x}",
    "(I need|I want|I'd like) a numbered list of {x}.", "(list|write) {x} with numbers [please].", "{x}\n(as a numbered list|numbered please|with numbers)",
)  # fmt: skip


def items(words: Words, low: int = 2, high: int = 7) -> list[str]:
    """Different things of one kind, or of all kinds."""
    rng = words.rng
    count = rng.randint(low, high)
    kind = rng.randrange(8)
    if kind == 7:
        made = [words.phrase(1, 2) for _ in range(count)]
    elif kind == 6:
        made = [words.first_name() for _ in range(count)]
    elif kind == 5:
        made = [
            f"{words.choice('ADJECTIVES')} {plural(words.choice('THINGS'))}" for _ in range(count)
        ]
    elif kind == 4:
        made = [words.coined() for _ in range(count)]
    else:
        made = words.sample(("FOODS", "THINGS", "CITIES", "ANIMALS")[kind], min(count, 6))
    return list(dict.fromkeys(made))


def given(words: Words, things: list[str]) -> str:
    """The items as someone would type them."""
    if len(things) == 1:
        return things[0]
    kind = words.rng.randrange(4)
    if kind == 0:
        return ", ".join(things)
    if kind == 1:
        return f"{', '.join(things[:-1])}, and {things[-1]}"
    return joined(things)


def lists(scene: Scene) -> None:
    """A bullet or numbered list of the items in the message."""
    things = items(scene.words)
    is_numbered = scene.rng.random() < 0.35
    scene.ask(
        _NUMBERS if is_numbered else _BULLETS,
        wrap=scene.rng.random() < 0.4,
        x=given(scene.words, things),
    )
    scene.about(None, "A list")
    scene.answer(listed(things, is_numbered=is_numbered))


def listed(things: list[str], *, is_numbered: bool) -> str:
    """The Markdown."""
    return "\n".join(f"{n}. {t}" if is_numbered else f"- {t}" for n, t in enumerate(things, 1))
