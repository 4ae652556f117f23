"""What a planned step computes, counted in tokens."""

from dataclasses import dataclass
from typing import NamedTuple

from inference.sequence import Sequence


@dataclass(frozen=True, slots=True)
class StepWork:
    """`num_read` of prompts and `num_decoded` of answers, drafts among them. `num_layered` pass some of
    the layers, and count in `num_read` for what that is worth. `is_usual`: nothing is read again.
    `num_behind` tokens of those who read were computed before."""

    reading: tuple[Sequence, ...]
    num_behind: int
    num_read: float
    num_decoded: int
    num_drafted: int
    num_layered: int
    is_usual: bool

    @classmethod
    def of(cls, plan: list[tuple[Sequence, int]]) -> "StepWork":
        """Before it is computed."""
        reading = [(sequence, num) for sequence, num in plan if not sequence.is_decoding]
        return cls(
            reading=tuple(sequence for sequence, _ in reading),
            num_behind=sum(sequence.num_computed for sequence, _ in reading),
            num_read=sum(sequence.worth_tokens(num) for sequence, num in reading),
            num_decoded=sum(num for sequence, num in plan if sequence.is_decoding),
            num_drafted=sum(len(sequence.draft) for sequence, _ in plan),
            num_layered=sum(num for sequence, num in reading if sequence.chunk),
            is_usual=not any(sequence.is_read_again for sequence, _ in plan),
        )

    def computed(self) -> "Computed":
        """What has come of it, when the step was run."""
        num_computed = sum(sequence.num_computed for sequence in self.reading)
        return Computed(
            max(0, num_computed - self.num_behind), self.num_decoded, bool(self.reading)
        )


class Computed(NamedTuple):
    """Tokens of prompts whose last layer a step computed, and of answers; whether it read at all."""

    num_read: int = 0
    num_decoded: int = 0
    is_reading: bool = False
