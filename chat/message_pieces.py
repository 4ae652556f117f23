"""What of a message gets a vector each: sentences that the embedding model reads at once. Pure.

A message is taken as plain text: whoever wrote it is not trusted, and this runs beside everybody's
requests, where the expressions that find Markdown's tables could take minutes of a made-up line.
"""

from collections.abc import Callable
from dataclasses import dataclass

from retrieval.chunking import ChunkSettings, chunks
from retrieval.parsing import Block, Page, Parsed

MAX_CHARS = 32_000  # of a message, some ten pages; words find the rest
MAX_TOKENS = 128
"""Less than a passage of a document: a message changes its subject sooner, and an excerpt is short."""

OVERLAP_TOKENS = 16
MIN_TOKENS = 8
"""What is shorter ("Thanks!", "ok") says nothing, and is near to whatever else says nothing."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The characters `start` to `end` of a message."""

    start: int
    end: int
    text: str


def pieces_of(text: str, count_tokens: Callable[[str], int], window_tokens: int) -> list[Piece]:
    """In order; none where the message is too short. `count_tokens` may include what every text gets,
    and `window_tokens` is what the model reads at once."""
    text = text[:MAX_CHARS]
    if not text.strip() or count_tokens(text) < MIN_TOKENS:
        return []
    whole = Parsed(
        text=text,
        pages=(Page(1, 0, len(text)),),
        blocks=(Block(0, len(text), "text"),),
        title="",
        media_type="text/plain",
        language="",
    )
    settings = ChunkSettings(
        max_tokens=min(MAX_TOKENS, window_tokens), overlap_tokens=OVERLAP_TOKENS
    )
    return [Piece(one.start, one.end, one.text) for one in chunks(whole, count_tokens, settings)]
