"""The piece of a text that shows what was found, and where in it. Text in, text out: no HTML."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chat.search_query import Unit
from retrieval.characters import SEPARATORS, WORD_CHARACTER, fold, is_word_character, runs

SNIPPET_CHARS = 180
LEAD_CHARS = 40  # shown in front of the first place


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a snippet; `is_hit` is what was looked for."""

    text: str
    is_hit: bool


class _Folding(dict[str, str]):
    """Each character folded by itself, remembered."""

    def __missing__(self, character: str) -> str:
        if len(self) > 20_000:
            self.clear()
        folded = self[character] = fold(character)
        return folded


_folding = _Folding()


class Highlighter:
    """Finds the wanted units of a query in texts, with the database's idea of what is the same."""

    def __init__(self, units: Sequence[Unit]) -> None:
        patterns = [_pattern(unit) for unit in units if not unit.is_unwanted]
        joined = "|".join(pattern for pattern in patterns if pattern)
        self._pattern = re.compile(joined) if joined else None

    def places(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of every place in the text, in order, none in another."""
        if self._pattern is None:
            return []
        folded, origin = _folded(text)
        found = []
        for match in self._pattern.finditer(folded):
            start, end = match.span()
            if start == end or not _begins_word(folded, start):
                continue
            found.append((origin[start], origin[end - 1] + 1))
        return found

    def snippet(self, text: str) -> list[Segment]:
        """About `SNIPPET_CHARS` of the text around the first places, on one line."""
        line = " ".join(text.split())
        places = self.places(line)
        start = _start(line, places[0][0] if places else 0)
        end = _end(line, start)
        inside = [(a, b) for a, b in places if a >= start and b <= end]
        return _segments(line, start, end, inside)

    def pieces(self, text: str) -> list[Segment]:
        """All of a short text."""
        return _segments(text, 0, len(text), self.places(text))


def _pattern(unit: Unit) -> str:
    """The runs of a unit with anything but words between them, up to the end of the last word."""
    found = runs(fold(unit.text))
    if not found:
        return ""
    pattern = f"[{SEPARATORS}]*".join(re.escape(run) for run, _ in found)
    if found[-1][1]:
        return pattern
    return pattern + (f"(?!{WORD_CHARACTER})" if unit.is_exact else f"{WORD_CHARACTER}{{0,40}}")


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """The folded text, and for each of its characters where it came from."""
    if text.isascii():
        return text.lower(), range(len(text))
    pieces = [_folding[character] for character in text]
    origin = [at for at, piece in enumerate(pieces) for _ in piece]
    return "".join(pieces), origin


def _begins_word(folded: str, start: int) -> bool:
    """Whether a word could begin here: not in the middle of one."""
    if start == 0 or not is_word_character(folded[start]):
        return True
    return not is_word_character(folded[start - 1])


def _start(line: str, first: int) -> int:
    """A little before the first place, at the beginning of a word."""
    if first <= LEAD_CHARS:
        return 0
    space = line.find(" ", first - LEAD_CHARS, first)
    return space + 1 if space >= 0 else first - LEAD_CHARS // 2


def _end(line: str, start: int) -> int:
    if len(line) - start <= SNIPPET_CHARS:
        return len(line)
    space = line.rfind(" ", start + SNIPPET_CHARS - 20, start + SNIPPET_CHARS)
    return space if space >= 0 else start + SNIPPET_CHARS


def _segments(line: str, start: int, end: int, places: list[tuple[int, int]]) -> list[Segment]:
    pieces = [("…" if start else "", False)]
    at = start
    for first, behind in places:
        pieces += [(line[at:first], False), (line[first:behind], True)]
        at = behind
    pieces += [(line[at:end], False), ("…" if end < len(line) else "", False)]
    segments: list[Segment] = []
    for text, is_hit in pieces:
        if segments and segments[-1].is_hit == is_hit:
            segments[-1] = Segment(segments[-1].text + text, is_hit)
        elif text:
            segments.append(Segment(text, is_hit))
    return segments
