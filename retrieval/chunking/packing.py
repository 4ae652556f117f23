"""Pieces to chunks: as many as fit, in their order, within their section."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.chunking.settings import ChunkSettings


@dataclass(frozen=True, slots=True)
class Piece:
    """A span that stays whole. `section` counts headings; `context` is what a chunk that begins here is
    given in front, of so many tokens. `level` is a heading's. Not `is_whole` are the further parts of a
    sentence or line that no chunk could hold."""

    start: int
    end: int
    kind: str
    tokens: int
    section: int
    level: int
    is_whole: bool
    headings: tuple[str, ...]
    context: str
    context_tokens: int


def packed(pieces: list[Piece], settings: ChunkSettings) -> Iterator[list[Piece]]:
    """Groups of neighbours, of which a group's first may be the last of the one before: the overlap."""
    sections, branches = _section_tokens(pieces), _branch_tokens(pieces)
    group: list[Piece] = []
    num_shared = 0  # of the group's pieces, those that the group before had
    index = 0
    while index < len(pieces):
        piece = pieces[index]
        if (
            piece.level
            and len(group) > num_shared
            and _ends_at(group, piece, sections[index], branches[index], settings)
        ):
            yield group
            group, num_shared = [], 0
        if group and not _fits(group, piece, settings):
            if len(group) == num_shared:  # the overlap and this one are too much together
                group = _from_a_whole(group[1:])
                num_shared = len(group)
                continue
            headings = _headings_at_end(group, num_shared)
            yield group[: len(group) - headings]
            index -= headings
            group = _overlap(group[: len(group) - headings], settings) if not headings else []
            num_shared = len(group)
            continue
        group.append(piece)
        index += 1
    if len(group) > num_shared:
        yield group


def _ends_at(
    group: list[Piece],
    heading: Piece,
    section_tokens: int,
    branch_tokens: int,
    settings: ChunkSettings,
) -> bool:
    """Whether this heading begins a chunk. Tiny sections are read together: one below what stands before
    it if there is room, any other only if it is tiny with all that stands below it; beside a long one,
    what a tiny one says would be found by neither words nor meaning."""
    if all(piece.level for piece in group):
        return False  # headings above it, with nothing of their own
    before = sum(piece.tokens for piece in group)
    if before >= settings.min_tokens:
        return True
    room = settings.max_tokens - group[0].context_tokens - before
    nearest = next((piece.level for piece in reversed(group) if piece.level), 0)
    # The end of a section that was too long for a chunk introduces nothing.
    is_begun = bool(group[0].level) or not group[0].section
    if is_begun and heading.level > nearest:
        return section_tokens > room
    return branch_tokens > min(settings.min_tokens, room)


def _fits(group: list[Piece], piece: Piece, settings: ChunkSettings) -> bool:
    tokens = sum(one.tokens for one in group) + piece.tokens + group[0].context_tokens
    return tokens <= settings.max_tokens and piece.end - group[0].start <= settings.max_chars


def _headings_at_end(group: list[Piece], num_shared: int) -> int:
    """How many headings end the group, which belong to what follows; none if it were empty then."""
    count = 0
    while count < len(group) and group[-1 - count].level:
        count += 1
    return count if len(group) - count > num_shared else 0


def _overlap(group: list[Piece], settings: ChunkSettings) -> list[Piece]:
    """The last sentences or lines, if the section goes on. Rows of a table stand for themselves."""
    shared: deque[Piece] = deque()
    tokens = 0
    for piece in reversed(group[1:]):
        tokens += piece.tokens
        if tokens > settings.overlap_tokens or piece.kind == "table" or piece.level:
            break
        shared.appendleft(piece)
    return _from_a_whole(list(shared))


def _from_a_whole(shared: list[Piece]) -> list[Piece]:
    """From its first piece on that begins a sentence or a line."""
    while shared and not shared[0].is_whole:
        shared = shared[1:]
    return shared


def _section_tokens(pieces: list[Piece]) -> list[int]:
    """For each piece, how many tokens its section has from there on."""
    totals = [0] * len(pieces)
    for index in range(len(pieces) - 1, -1, -1):
        totals[index] = pieces[index].tokens
        if index + 1 < len(pieces) and pieces[index + 1].section == pieces[index].section:
            totals[index] += totals[index + 1]
    return totals


def _branch_tokens(pieces: list[Piece]) -> list[int]:
    """For each heading, how many tokens its section has with all sections below it; else 0."""
    totals = [0] * len(pieces)
    behind: list[tuple[int, int]] = []  # (level, tokens) of branches, the next one last
    tokens = 0
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        tokens += piece.tokens
        if not piece.level:
            continue
        while behind and behind[-1][0] > piece.level:
            tokens += behind.pop()[1]
        behind.append((piece.level, tokens))
        totals[index], tokens = tokens, 0
    return totals
