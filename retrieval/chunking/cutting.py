"""Pieces that are too large for a chunk, cut: at a comma, a space, in the worst case between letters."""

import re
from collections.abc import Callable, Iterator

from retrieval.chunking.graphemes import last_cut, may_cut
from retrieval.chunking.pieces import Span, trim

Count = Callable[[str], int]

_CLAUSE_END = re.compile(r"[,;:–—)](?=\s)|[、，；：）]")
_SPACE = re.compile(r"\s+")
_FIRST_GUESS = 4.0  # characters of a token


def cut_to_fit(
    text: str, span: Span, count: Count, max_tokens: int, max_chars: int
) -> Iterator[tuple[Span, int]]:
    """(span, tokens) one after the other, each within both limits, each nearly as large as fits."""
    start, end = span
    chars_per_token = _FIRST_GUESS
    while start < end:
        most = min(max_chars, max(1, int(max_tokens * chars_per_token)))
        place = _place(text, start, end, most)
        tokens = count(text[start:place])
        while tokens > max_tokens and place - start > 1:
            most = min(place - start - 1, int((place - start) * max_tokens / tokens * 0.95))
            place = _place(text, start, end, max(1, most))
            tokens = count(text[start:place])
        first, last = trim(text, start, place, keep_indent=True)
        if first < last:
            yield (first, last), tokens
        # Guesses rise slowly and fall at once: one too large has to be counted again.
        if tokens:
            chars_per_token = min(2 * chars_per_token, max(1.0, 0.95 * (place - start) / tokens))
        start = place


def _place(text: str, start: int, end: int, most: int) -> int:
    """Where to cut at the latest `most` characters on."""
    if end - start <= most:
        return end
    latest = start + most
    for boundary, earliest in ((_CLAUSE_END, start + 3 * most // 4), (_SPACE, start + most // 4)):
        found = [
            match.end()
            for match in boundary.finditer(text, earliest, latest)
            if match.end() > start and may_cut(text, match.end())
        ]
        if found:
            return found[-1]
    return last_cut(text, start, latest)
