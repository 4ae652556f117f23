"""The examples that the heads learn from: written by hand for this project, with blanks filled in.

A file for each category, `hate.threatening.txt` for hate/threatening, and files of harmless texts under
`safe/`. In a file:

    == a title             begins a block
    a text                 an example; \\n is a line break
    ~ a verb phrase        an act: frames are put around it ("How do I ...?")
    {groups} {group} {minor} {act} …  blanks, filled differently in each copy

A title that ends in [planted] marks instructions as they are planted in documents: those are learnt
within documents as well; one that ends in [before] has orders to ignore others, which are learnt
before all kinds of requests as well; [host] has documents; [natural] has whole texts as people write
them, by writers who knew nothing of the heads: these count more, and calibrate attacks; [apart] has all
that one such writer wrote, which is held out as a whole, and joined to nobody else's attacks; [sounding]
harmless texts of that writer that sound harmful. The lines
of a block "by pattern" are made of the same parts (see `slots`), and are held out together.

`in_documents/` has what may stand in a document (see `documents`): questions to it, and orders that it
doesn't call for. Most of those orders would be fine if somebody had written them and nothing else.
In `planted` are whole documents, of each of which ⟦the order⟧ is marked that was planted there: by hand,
or, of a block that is [rough], by the heads before, to the ends of sentences. One in ten of these marks
is not right, so nothing harmless is learnt from what stands beside them. What is [foreign] would be fine
elsewhere and names no machine: that is learnt by its place among other sentences alone.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

from moderation.categories import (
    HEAD_CATEGORIES,
    INJECTION_CATEGORIES,
    UNSAFE_CATEGORIES,
    parent,
)
from moderation.heads import slots
from moderation.heads.slots import FRAMES, GROUPS, MINORS, QUESTIONS_ON_DOCUMENTS, SAFE_FRAMES
from moderation.windows import WINDOW_WORDS, pieces_of, readings, windows, words_in

DIRECTORY = Path(__file__).parent / "examples"
HELD_OUT = Path(__file__).parent / "held_out"

WRITERS_APART = (
    "first stranger",
    "second stranger",
    "third stranger",
    "fourth stranger",
    "writer A",
    "writer B",
    "writer C",
    "writer D",
    "writer E",
    "writer F",
    "writer G",
    "writer H",
)
"""Whoever wrote the blocks that are [apart]."""
COPIES_OF_ACT = 3
COPIES_WITH_BLANKS = 4
COPIES_OF_PATTERN = 10
COPIES_PLANTED = 3
COPIES_BEFORE = 5
COPIES_IN_DOCUMENTS = 2  # at the start, in the middle and at the end each
COPIES_OF_PATTERN_IN_DOCUMENTS = 5
_RUN_LINES = 8  # neighbours in a file are alike; they are held out together
_SEPARATORS = ("\n", "\n", "\n\n", " ")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")

# What a category's examples may be as well; nothing is learnt about these from them.
_UNJUDGED: dict[str, tuple[str, ...]] = {
    "harassment": ("hate", "self-harm", "sexual"),
    "harassment/threatening": ("hate", "illicit", "illicit/violent"),
    "hate": ("harassment", "violence", "illicit"),
    "hate/threatening": ("harassment", "harassment/threatening", "illicit", "illicit/violent"),
    "illicit": ("harassment", "hate", "violence", "sexual", "illicit/violent", "self-harm"),
    "illicit/violent": ("violence", "hate", "hate/threatening", "harassment/threatening"),
    "self-harm": ("self-harm/intent", "self-harm/instructions", "violence", "harassment"),
    "self-harm/intent": ("self-harm/instructions", "violence"),
    "self-harm/instructions": ("self-harm/intent", "illicit", "illicit/violent"),
    "sexual": ("harassment",),
    "sexual/minors": ("illicit",),
    "violence": ("harassment", "harassment/threatening", "hate", "illicit", "illicit/violent",
                 "violence/graphic", "hate/threatening"),
    "violence/graphic": ("illicit/violent", "illicit"),
    "prompt_injection": ("jailbreak",),
    "jailbreak": ("prompt_injection", *UNSAFE_CATEGORIES),
}  # fmt: skip
_IMPLIED: dict[str, tuple[str, ...]] = {
    "harassment/threatening": ("violence",),
    "hate/threatening": ("violence",),
}


@dataclass(frozen=True, slots=True)
class Example:
    """`unjudged` categories are neither true nor false of it. A `group` is held out as a whole."""

    text: str
    categories: frozenset[str]
    unjudged: frozenset[str]
    group: str


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    group: str
    is_act: bool
    is_planted: bool
    is_before: bool
    is_host: bool
    is_pattern: bool
    is_apart: bool
    number: int


@cache
def training_examples() -> tuple[Example, ...]:
    """All examples, in the order of the files; the same ones each time."""
    by_text: dict[str, Example] = {}
    for whole in _all():
        for example in _windows_of(whole):
            by_text.setdefault(example.text, example)
    return tuple(by_text.values())


def held_out_examples() -> list[Example]:
    """Texts that nothing is learnt from: `[category] text` on each line, or a harmless text."""
    found = []
    for path in sorted(HELD_OUT.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, text = re.fullmatch(r"(?:\[([a-z_.-]+)\] )?(.*)", line).groups()  # type: ignore[union-attr]
            categories = _labels(name.replace(".", "/")) if name else frozenset()
            found.append(Example(_unescaped(text), categories, frozenset(), path.stem))
    return found


@dataclass(frozen=True, slots=True)
class Document:
    """A text of several windows, of the group `host`, and what was put into it: an order to a machine, a
    question, or nothing. What was `added` is of its own `group`."""

    text: str
    added: str
    is_order: bool
    group: str
    host: str

    def group_of(self, piece: str) -> str:
        return self.group if self.is_added(piece) else self.host

    def is_added(self, piece: str) -> bool:
        return bool(self.added) and (piece in self.added or self.added in piece)


@cache
def documents() -> tuple[Document, ...]:
    """With orders that nobody but a machine is to follow, at any place; and without, but with questions
    to them, with which they start or end."""
    by_text: dict[str, Document] = {}
    for one in _documents():
        if len(windows(one.text)) > 1 and sum(map(bool, map(str.strip, pieces_of(one.text)))) > 1:
            by_text.setdefault(one.text, one)
    return tuple(by_text.values())


def _documents() -> Iterator[Document]:
    hosts = _hosts()
    planted = [line for line in _lines("prompt_injection") if line.is_planted]
    for line in [*_lines("in_documents/orders"), *planted]:
        random = Random(f"document {line.text} {line.number}")
        copies = COPIES_OF_PATTERN_IN_DOCUMENTS if line.is_pattern else COPIES_IN_DOCUMENTS
        for place in ("start", "middle", "end"):
            for host in random.sample(hosts, 1 if line.is_planted else copies):
                order = _filled(line.text, random, [])
                order = order[:1].upper() + order[1:]
                text = _with(order, _run_of(host.text, random), place, random)
                yield Document(text, order, True, line.group, host.group)
    for line in _lines("in_documents/questions"):
        random = Random(f"document {line.text}")
        for place in ("start", "end"):
            for host in random.sample(hosts, 2 * COPIES_IN_DOCUMENTS):
                text = _with(line.text, _run_of(host.text, random), place, random)
                yield Document(text, line.text, False, line.group, host.group)
    for line in _lines("in_documents/planted"):
        before, order, behind = _marked(line.text)
        yield Document(before + order + behind, order, True, line.group, line.group)
    for name in _safe_names():
        for line in _lines(name):
            if not line.is_act:
                text = _filled(line.text, Random(f"document {line.text}"), [])
                yield Document(text, "", False, line.group, line.group)


def _run_of(text: str, random: Random) -> str:
    """All of it, or some sentences in a row, not much less than a window."""
    pieces = pieces_of(text)
    if random.random() < 0.4:
        return text.strip()
    start = random.randrange(len(pieces))
    while start and words_in("".join(pieces[start:])) < WINDOW_WORDS:
        start -= 1
    end = start + 1
    most = random.randint(WINDOW_WORDS, 4 * WINDOW_WORDS)
    while end < len(pieces) and words_in("".join(pieces[start : end + 1])) <= most:
        end += 1
    return "".join(pieces[start:end]).strip()


def _with(order: str, text: str, place: str, random: Random) -> str:
    between = random.choice(_SEPARATORS)
    if place == "start":
        return f"{order}{between}{text}"
    if place == "end":
        return f"{text}{between}{order}"
    pieces = pieces_of(text)
    at = random.randint(1, max(1, len(pieces) - 1))
    before, behind = "".join(pieces[:at]).rstrip(), "".join(pieces[at:])
    return f"{before}{between}{order}{between if random.random() < 0.7 else ' '}{behind}"


@dataclass(frozen=True, slots=True)
class NaturalText:
    """A whole text as people write it: harmless, an attack by itself, or with an order planted in it."""

    text: str
    kind: Literal["harmless", "direct", "planted"]
    group: str


@cache
def natural_texts() -> tuple[NaturalText, ...]:
    found = []
    of_harm = set(HEAD_CATEGORIES) - set(INJECTION_CATEGORIES)
    for name in _all_names():
        for line in _lines(name):
            if not is_natural(line.group) or name in of_harm:
                continue
            if name.startswith("safe/"):
                found.append(NaturalText(line.text, "harmless", line.group))
            elif name == "in_documents/planted":
                found.append(NaturalText("".join(_marked(line.text)), "planted", line.group))
            else:
                found.append(NaturalText(line.text, "direct", line.group))
    return tuple(found)


def is_natural(group: str) -> bool:
    return "[natural]" in group


def is_apart(group: str) -> bool:
    """Whether all of a writer is in it, or in groups that differ in what stands in brackets alone."""
    return "[apart]" in group


def is_rough(group: str) -> bool:
    """Whether the orders of that group's documents are marked by machine."""
    return "[rough]" in group


def is_sounding(group: str) -> bool:
    """Whether the harmless texts of that group sound harmful."""
    return "[sounding]" in group


def writer_of(group: str) -> str:
    """Of what is apart."""
    return group.removeprefix("apart: ").partition(" [")[0]


def is_planted(group: str) -> bool:
    """Whether what is an attack of that group is an order to a machine within a document."""
    return "[planted]" in group


def digest() -> str:
    """Of all that is learnt: changes with every text and label."""
    sha256 = hashlib.sha256()
    for one in [*training_examples()]:
        fields = [one.text, *sorted(one.categories), "-", *sorted(one.unjudged), one.group]
        sha256.update("\0".join(fields).encode() + b"\1")
    for document in documents():
        fields = [document.text, document.added, str(document.is_order), document.group]
        sha256.update("\0".join(fields).encode() + b"\2")
    return sha256.hexdigest()


def num_written() -> int:
    """How many lines of the files are written by hand."""
    return sum(1 for name in _all_names() for _ in _lines(name))


def _all() -> Iterator[Example]:
    acts = [line for name in ("illicit", "illicit/violent") for line in _lines(name) if line.is_act]
    for name in HEAD_CATEGORIES:
        for line in _lines(name):
            for text in _texts(line, acts):
                yield _of_category(name, text, line.group)
    for name in _safe_names():
        for line in _lines(name):
            for text in _texts(line, acts):
                yield _harmless(text, line.group)
    for line in acts:
        random = Random(f"safe {line.text}")
        if random.random() < 0.6:
            text = random.choice(SAFE_FRAMES).replace("{act}", line.text)
            yield _harmless(text, line.group)
    yield from _planted()
    yield from _windows_with_orders()
    yield from _joined()


def _of_category(name: str, text: str, group: str) -> Example:
    categories = _labels(name)
    unjudged = frozenset(_UNJUDGED.get(name, ())) - categories
    return Example(text, categories, unjudged, group)


def _labels(name: str) -> frozenset[str]:
    if name not in HEAD_CATEGORIES:
        raise ValueError(f"there is no head for {name!r}")
    over = parent(name)
    return frozenset({name, *([over] if over else []), *_IMPLIED.get(name, ())})


def _harmless(text: str, group: str) -> Example:
    return Example(text, frozenset(), frozenset(), group)


def _windows_of(example: Example) -> Iterator[Example]:
    """Long texts are judged by windows: of harmless ones, each is harmless."""
    yield example
    if not example.categories:
        for text in readings(example.text):
            yield _harmless(text, example.group)


def _texts(line: _Line, acts: list[_Line]) -> Iterator[str]:
    random = Random(f"{line.number} {line.text}")
    if line.is_act:
        for frame in random.sample(FRAMES, COPIES_OF_ACT):
            yield _filled(frame.replace("{act}", line.text), random, acts)
    elif "{" in line.text and (filled := _filled(line.text, random, acts)) != line.text:
        yield filled
        copies = COPIES_OF_PATTERN if line.is_pattern else COPIES_WITH_BLANKS
        for _ in range(copies - 1):
            yield _filled(line.text, random, acts)
    else:
        yield line.text


def _filled(text: str, random: Random, acts: list[_Line]) -> str:
    many, one = random.choice(GROUPS)
    text = text.replace("{groups}", many)
    # "every {group}", "a good {group}": without the article
    text = re.sub(r"(?i)\b(every|next|good|another) \{group\}", rf"\1 {one.split(' ', 1)[1]}", text)
    text = re.sub(r"Once \{group\}", f"Once {one}", text).replace("{group}", one)
    text = text.replace("{minor}", random.choice(MINORS))
    if "{act}" in text:
        text = text.replace("{act}", random.choice(acts).text)
    for blank, fillings in slots.PATTERNS.items():
        if blank in text:
            text = text.replace(blank, random.choice(fillings))
    return text[:1].upper() + text[1:] if text.startswith(many) else text


def _planted() -> Iterator[Example]:
    """Instructions within documents, at any place of them; and documents without any."""
    hosts = _hosts()
    for place, line in enumerate(_lines("prompt_injection")):
        if not line.is_planted:
            continue
        random = Random(f"planted {place} {line.text}")
        for host in random.sample(hosts, COPIES_PLANTED):
            kept = _some_sentences(host.text, random)
            kept.insert(random.randint(0, len(kept)), _filled(line.text, random, []))
            text = _asked_about(" ".join(kept), random)
            yield _of_category("prompt_injection", text, line.group)
    for host in hosts:
        random = Random(f"host {host.text}")
        for _ in range(COPIES_PLANTED):
            text = _asked_about(" ".join(_some_sentences(host.text, random)), random)
            yield _harmless(text, host.group)


def _windows_with_orders() -> Iterator[Example]:
    """Of documents as they were written with an order: windows with half of it or more are attacks, and
    those without any of it harmless."""
    for line in _lines("in_documents/planted"):
        if not is_planted(line.group):
            continue
        before, order, behind = _marked(line.text)
        text = before + order + behind
        start, end = len(before), len(before) + len(order)
        for window in windows(text):
            at = text.find(window.text)
            shared = min(end, at + len(window.text)) - max(start, at)
            if shared >= len(order) / 2:
                yield _of_category("prompt_injection", window.text, line.group)
            elif shared <= 0 and not is_rough(line.group):
                yield _harmless(window.text, line.group)


def _marked(text: str) -> tuple[str, str, str]:
    """What stands before an order, the order, and what stands behind it."""
    before, _, rest = text.partition("⟦")
    order, _, behind = rest.partition("⟧")
    return before, order, behind


def _hosts() -> list[_Line]:
    lines = [line for name in _safe_names() for line in _lines(name) if line.is_host]
    return [*_lines("safe/documents"), *lines]


def _some_sentences(text: str, random: Random) -> list[str]:
    sentences = [one for one in _SENTENCE_END.split(text) if one]
    start = random.randrange(max(1, len(sentences) - 1))
    return sentences[start : start + random.randint(1, 4)]


def _asked_about(document: str, random: Random) -> str:
    """Now and then with the question that somebody has on it."""
    asked = ["", "", *QUESTIONS_ON_DOCUMENTS]
    return f"{random.choice(asked)} {document}".strip()


def _joined() -> Iterator[Example]:
    """An attack behind or before something harmless; a jailbreak with what it is for; and two harmless
    texts in a row, so that being two tells nothing."""
    harmless = [
        line
        for name in _safe_names()
        for line in _lines(name)
        if not (line.is_act or line.is_apart) and words_in(line.text) <= WINDOW_WORDS
    ]
    acts = [line for name in ("illicit", "illicit/violent") for line in _lines(name) if line.is_act]
    for name in INJECTION_CATEGORIES:
        for line in _lines(name):
            random = Random(f"joined {line.text}")
            if line.is_before:
                for request in random.sample(harmless, COPIES_BEFORE):
                    text = _filled(f"{line.text} {request.text}", random, acts)
                    yield _of_category(name, text, line.group)
                continue
            if "{" in line.text or line.is_planted or random.random() < 0.4:
                continue
            if name == "jailbreak":
                wanted = random.choice(FRAMES).replace("{act}", random.choice(acts).text)
            else:
                wanted = random.choice(harmless).text
            pair = [line.text, wanted]
            if random.random() < 0.5 and name != "jailbreak":
                pair.reverse()
            text = _filled(" ".join(pair), random, acts)
            yield _of_category(name, text, line.group)
    for line in harmless:
        random = Random(f"joined {line.text}")
        if random.random() < 0.25:
            text = f"{line.text} {random.choice(harmless).text}"
            yield _harmless(_filled(text, random, acts), line.group)


# --- files ----------------------------------------------------------------------------------------


def _safe_names() -> list[str]:
    return [f"safe/{path.stem}" for path in sorted((DIRECTORY / "safe").glob("*.txt"))]


def _all_names() -> list[str]:
    of_documents = [f"in_documents/{name}" for name in ("orders", "planted", "questions")]
    return [*HEAD_CATEGORIES, *_safe_names(), *of_documents]


def _path(name: str) -> Path:
    if name.startswith(("safe/", "in_documents/")):
        return DIRECTORY / f"{name}.txt"
    return DIRECTORY / f"{name.replace('/', '.')}.txt"


@cache
def _lines(name: str) -> tuple[_Line, ...]:
    found: list[_Line] = []
    title, place = "", 0
    for row in _path(name).read_text(encoding="utf-8").splitlines():
        text = row.strip()
        if text.startswith("== ") and not text.startswith("=== "):
            title, place = text.removeprefix("== "), 0
            continue
        if not text:
            continue
        is_apart = "[apart]" in title
        run = 0 if title.startswith("by pattern") else place // _RUN_LINES
        group = f"apart: {title}" if is_apart else f"{name}: {title} {run}"
        place += 1
        is_act = text.startswith("~ ")
        text = _unescaped(text.removeprefix("~ "))
        found.append(
            _Line(
                text,
                group,
                is_act,
                "[planted]" in title,
                "[before]" in title,
                "[host]" in title,
                title.startswith("by pattern:"),
                is_apart,
                len(found),
            )
        )
    return tuple(found)


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n")
