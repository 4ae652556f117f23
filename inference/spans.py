"""Which packed tokens of a step belong to whom."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`num_tokens` packed tokens of one sequence, behind `start` tokens that are in the cache.

    Tokens of an answer come one by one where nothing goes wrong. So those of a draft, or of an answer
    that is read anew after a crash or a preemption, are computed as if each came alone (`each_alone`):
    else guessing ahead, or a crash, would change what follows.
    `adapter` is the name of the one that they go through, if they do.
    """

    sequence_id: str
    start: int
    num_tokens: int
    each_alone: bool = False
    adapter: str = ""
