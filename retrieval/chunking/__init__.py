"""A document's text becomes chunks: what is embedded, found and cited."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from retrieval.chunking.cutting import Count, cut_to_fit
from retrieval.chunking.packing import Piece, packed
from retrieval.chunking.pieces import Span, header_of, lines_of, pieces, whole_blocks
from retrieval.chunking.settings import Chunk, ChunkSettings
from retrieval.parsing.pages import Block, Parsed

__all__ = ["Chunk", "ChunkSettings", "chunks"]

_MAX_HEADING_CHARS = 200
_MAX_HEADER_CHARS = 1_000
_MAX_GAP_CHARS = 20
_JOIN = "\n"  # between headings, and between context and text


def chunks(
    parsed: Parsed, count_tokens: Callable[[str], int], settings: ChunkSettings
) -> list[Chunk]:
    """The document in order. What is not white space is in at least one chunk.

    Each piece (a sentence, a line, a row) is counted once, and each chunk once: a little more than two
    passes of the tokenizer over the text. Counting may include tokens that every text gets.
    """
    overhead = count_tokens("")
    room = settings.max_tokens - overhead
    inner = replace(
        settings,
        max_tokens=room,
        overlap_tokens=min(settings.overlap_tokens, room // 2),
        max_context_tokens=min(settings.max_context_tokens, room // 2),
    )

    def count(text: str) -> int:
        return count_tokens(text) - overhead

    starts = [page.start for page in parsed.pages]
    made: list[Chunk] = []
    for group in packed(list(_pieces(parsed, count, inner)), inner):
        for part, tokens in _within(group, parsed.text, count, inner):
            if made and part[-1].end <= made[-1].end:
                continue  # a half that is all overlap
            if made and part[0].start <= made[-1].start:
                made.pop()  # which this one has within it
            made.append(_chunk(part, len(made) + 1, parsed.text, starts, tokens + overhead))
    return made


class _Contexts:
    """What stands in front of texts, and its tokens: many chunks have the same."""

    def __init__(self, count: Count, max_tokens: int) -> None:
        self._count = count
        self._max_tokens = max_tokens
        self._known: dict[str, int] = {"": 0}

    def tokens(self, context: str) -> int:
        if context not in self._known:
            self._known[context] = self._count(context + _JOIN) + 1
        return self._known[context]

    def fitting(self, *lines: str) -> str:
        """Its end, which is nearest to the text, where there is no room for all of it."""
        context = _JOIN.join(lines)
        while self.tokens(context) > self._max_tokens:
            context = context[len(context) // 4 + 1 :]
        return context


# --- pieces -----------------------------------------------------------------------------------


def _pieces(parsed: Parsed, count: Count, settings: ChunkSettings) -> Iterator[Piece]:
    """With the section that each is in, and none larger than a chunk has room for."""
    text = parsed.text
    path: list[tuple[int, str]] = []  # headings above, with their levels
    section = end = 0
    contexts = _Contexts(count, settings.max_context_tokens)
    for block in whole_blocks(parsed):
        if block.kind == "heading":
            section += 1
            path = [above for above in path if above[0] < block.level]
        headings = tuple(words for _, words in path)
        context = contexts.fitting(*headings)
        make = partial(_piece, section=section, headings=headings, contexts=contexts)
        if block.kind == "heading":
            path.append((block.level, _as_heading(text[block.start : block.end])))
            headings = (*headings, path[-1][1])
        header = header_of(text, block) if block.kind == "table" else None
        for span in pieces(text, block):
            its_context = context
            if header is not None and span[0] > header[0]:
                words = text[header[0] : header[1]][:_MAX_HEADER_CHARS]
                its_context = contexts.fitting(*headings, words)
            room = settings.max_tokens - contexts.tokens(its_context)
            for part, tokens in _parts(
                text, span, end, block.kind, count, room, settings.max_chars
            ):
                is_whole = part[0] == span[0] or text[part[0] - 1] == "\n"
                yield make(part, block, tokens, its_context, is_whole=is_whole)
                end = part[1]


def _parts(
    text: str, span: Span, end: int, kind: str, count: Count, room: int, max_chars: int
) -> Iterator[tuple[Span, int]]:
    """(span, tokens): the span as it is, or its lines where it is too large, or parts of them.

    White space in front, from `end` on, is counted as well: to many tokenizers a line's end is a token.
    """
    if span[1] - span[0] <= max_chars:
        for start in (max(end, span[0] - _MAX_GAP_CHARS), span[0]):
            if (tokens := count(text[start : span[1]])) <= room:
                yield span, tokens
                return
    lines = lines_of(text, span, keep_indent=True) if kind == "code" else []
    if len(lines) > 1:
        for line in lines:
            yield from _parts(text, line, end, kind, count, room, max_chars)
            end = line[1]
    else:
        yield from cut_to_fit(text, span, count, room, max_chars)


def _piece(
    span: Span,
    block: Block,
    tokens: int,
    context: str,
    *,
    section: int,
    headings: tuple[str, ...],
    contexts: _Contexts,
    is_whole: bool,
) -> Piece:
    level = block.level or 6 if block.kind == "heading" else 0
    context_tokens = contexts.tokens(context)
    return Piece(
        *span, block.kind, tokens, section, level, is_whole, headings, context, context_tokens
    )


def _as_heading(text: str) -> str:
    return " ".join(text.lstrip("# ").split())[:_MAX_HEADING_CHARS]


# --- chunks -----------------------------------------------------------------------------------


def _within(
    group: list[Piece], text: str, count: Count, settings: ChunkSettings
) -> Iterator[tuple[list[Piece], int]]:
    """The group and its tokens, or halves of it: to a few tokenizers a text has more tokens than its
    pieces together."""
    tokens = count(text[group[0].start : group[-1].end])
    if len(group) == 1 or tokens + group[0].context_tokens <= settings.max_tokens:
        yield group, tokens
    else:
        middle = len(group) // 2
        yield from _within(group[:middle], text, count, settings)
        yield from _within(group[middle:], text, count, settings)


def _chunk(
    group: list[Piece], number: int, text: str, page_starts: list[int], num_tokens: int
) -> Chunk:
    start, end = group[0].start, group[-1].end
    num_chars: Counter[str] = Counter()
    for piece in group:
        num_chars["text" if piece.kind == "heading" else piece.kind] += piece.end - piece.start
    return Chunk(
        number=number,
        text=text[start:end],
        start=start,
        end=end,
        first_page=max(1, bisect_right(page_starts, start)),
        last_page=max(1, bisect_right(page_starts, end - 1)),
        headings=group[0].headings,
        kind=num_chars.most_common(1)[0][0],
        num_tokens=num_tokens,
        context=group[0].context,
    )
