"""Which packed tokens of a step belong to whom."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`num_tokens` packed tokens of one sequence, behind `start` tokens that are in the cache.

    A draft's tokens are computed as if each came by itself, or guessing ahead would change answers.
    `adapter` is the name of the one that they go through, if they do.
    """

    sequence_id: str
    start: int
    num_tokens: int
    is_draft: bool = False
    adapter: str = ""
