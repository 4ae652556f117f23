"""Blocks to pieces: sentences, lines, rows. What a chunk is made of, and never cuts if it fits.

Pieces are spans of the text in its order, and leave out white space only.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from retrieval.chunking.graphemes import holds_space, may_cut
from retrieval.parsing.pages import Block, Parsed

Span = tuple[int, int]

_CLOSERS = "\"'”’»›)\\]」』）】》〉"
# After a full stop comes white space and no small letter; a single letter before it is an initial,
# and a row of them leads to a page's number.
# Behind the stops of languages without spaces comes nothing.
_SENTENCE_END = re.compile(
    rf"(?<=[\w%{_CLOSERS}])(?<!\b[^\W\d_])[.!?…‼⁇⁈⁉؟۔।॥։]+[{_CLOSERS}]*(?=\s)"
    rf"|[。！？｡．][。！？｡．{_CLOSERS}]*|\n[ \t]*\n"
)
_NEXT_WORD = re.compile(r"\s+[\"'“‘«(\[]*(\S)")
# A new statement at the margin, after an empty line.
_NEW_STATEMENT = re.compile(r"\n[ \t]*\n(?=[^\s})\]])")
_TABLE_RULE = re.compile(r"(?=[^-]*-)[\s:|-]+\Z")


def whole_blocks(parsed: Parsed) -> Iterator[Block]:
    """The blocks, and what lies between them if it is more than white space."""
    place = 0
    for block in sorted(parsed.blocks, key=lambda block: (block.start, block.end)):
        yield from _gap(parsed.text, place, block.start)
        if block.end > place:
            yield Block(max(place, block.start), block.end, block.kind, block.level)
            place = block.end
    yield from _gap(parsed.text, place, len(parsed.text))


def pieces(text: str, block: Block) -> list[Span]:
    """Without white space around them, but for the indentation of lines of code."""
    if block.kind == "text":
        spans = _sentences(text, block.start, block.end)
    elif block.kind == "code":
        spans = _split(text, block.start, block.end, _NEW_STATEMENT)
    elif block.kind == "heading":
        spans = [(block.start, block.end)]
    else:
        spans = _lines(text, block.start, block.end)
    keep_indent = block.kind in ("code", "list")
    trimmed = (trim(text, start, end, keep_indent=keep_indent) for start, end in spans)
    return [(start, end) for start, end in trimmed if start < end]


def lines_of(text: str, span: Span, *, keep_indent: bool) -> list[Span]:
    trimmed = (trim(text, *line, keep_indent=keep_indent) for line in _lines(text, *span))
    return [(start, end) for start, end in trimmed if start < end]


def header_of(text: str, block: Block) -> Span | None:
    """The first row of a Markdown table, if a rule stands under it."""
    rows = _lines(text, block.start, block.end)[:2]
    has_header = len(rows) == 2 and _TABLE_RULE.match(text[rows[1][0] : rows[1][1]].strip())
    return trim(text, *rows[0]) if has_header else None


def trim(text: str, start: int, end: int, *, keep_indent: bool = False) -> Span:
    part = text[start:end]
    last = start + len(part.rstrip())
    if last == start:
        return start, start
    end = last + 1 if last < end and holds_space(text, last) else last
    first = start + len(part) - len(part.lstrip())
    if keep_indent:
        newline = text.rfind("\n", start, first)
        first = newline + 1 if newline >= 0 else start
    while first > start and not may_cut(text, first):
        first -= 1  # an accent on a space belongs to it
    return first, end


def _gap(text: str, start: int, end: int) -> Iterator[Block]:
    if start < end and text[start:end].strip():
        yield Block(start, end, "text")


def _sentences(text: str, start: int, end: int) -> list[Span]:
    spans, begun = [], start
    for found in _SENTENCE_END.finditer(text, start, end):
        place = found.end()
        word = _NEXT_WORD.match(text, place, end)
        goes_on = found[0][0] == "." and word is not None and word[1].islower()
        if not goes_on and may_cut(text, place):
            spans.append((begun, place))
            begun = place
    return [*spans, (begun, end)]


def _split(text: str, start: int, end: int, at: re.Pattern[str]) -> list[Span]:
    cuts = [start, *(found.end() for found in at.finditer(text, start, end)), end]
    return list(pairwise(cuts))


_NEWLINE = re.compile("\n")


def _lines(text: str, start: int, end: int) -> list[Span]:
    return _split(text, start, end, _NEWLINE)
