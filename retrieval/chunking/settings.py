"""How large chunks are, and what one is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """`max_tokens` is what the embedding model reads; context and text of a chunk together stay within.

    `overlap_tokens` is how much of its end a chunk shares with the next; of it and of
    `max_context_tokens` no more is used than half a chunk. Neighbours below `min_tokens`
    go together where they fit, even over a heading. `max_chars` bounds what a model counts as few
    tokens: a word of a megabyte is a single unknown one to some.
    """

    max_tokens: int = 512
    overlap_tokens: int = 128
    min_tokens: int = 96
    max_context_tokens: int = 96
    max_chars: int = 6_000

    def __post_init__(self) -> None:
        if self.max_tokens < 8 or self.max_chars < 16:
            raise ValueError("A chunk takes at least 8 tokens and 16 characters.")
        if min(self.overlap_tokens, self.min_tokens, self.max_context_tokens) < 0:
            raise ValueError("Tokens are counted from 0.")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The document's text from `start` to before `end`, and `text` is exactly that.

    `headings` are those that it stands under, the highest first. `context` is what its text alone does
    not say: headings above it, the header of the table that its rows are of. It is embedded in front of
    the text and is no part of it. `kind` is that of most of its characters. `num_tokens` counts `text`.
    """

    number: int  # from 1
    text: str
    start: int
    end: int
    first_page: int
    last_page: int
    headings: tuple[str, ...]
    kind: str
    num_tokens: int
    context: str = ""
