"""Whether a worker has become slow: its steps now against its own steps when all was calm.

Like is compared with like. Steps that read prompts are left out, and the others are compared within
cells of about as many tokens per step and about as many tokens in the cache: from one end of a cell to
the other a step takes at most twice as long. So does a token of an encoder's step, within cells of
about as many tokens per step and about as long inputs. Only the time in the model counts, not that of
grammars, penalties or a busy web process.
"""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from inference.messages import EngineStats

SLOW = 4.0  # times the calm pace; a cell alone can make two of it
FINE = 2.0  # an episode that has begun ends below this
_CALM_STEPS = 16
_BLOCK_STEPS = 8
_BLOCK_MS = 2000.0
_NUM_BLOCKS = 3  # so many slow ones in a row: a burst of a neighbour on the machine is over by then

_Cell = tuple[int, int]


@dataclass(slots=True)
class _Calm:
    """The best pace that a cell has kept over some steps: their median. None until there were any.

    Of a step that decoded, or of a token that was encoded.
    """

    best_ms: float | None = None
    recent_ms: list[float] = field(default_factory=list)

    def learn(self, step_ms: float) -> None:
        self.recent_ms.append(step_ms)
        if len(self.recent_ms) == _CALM_STEPS:
            middle_ms = median(self.recent_ms)
            self.best_ms = min(middle_ms, self.best_ms or middle_ms)
            self.recent_ms.clear()


def _cell_of(stats: EngineStats) -> _Cell | None:
    if stats.num_encoded_tokens:
        return stats.num_encoded_tokens.bit_length(), stats.num_longest.bit_length()
    if stats.num_decoded_tokens and not stats.is_reading:
        return stats.num_decoded_tokens.bit_length(), stats.kv_tokens_used.bit_length()
    return None


class Pace:
    """Hears of steps of one model's workers, one after the other: of fast ones not of all."""

    def __init__(self) -> None:
        self.is_slow = False
        self._calm: dict[_Cell, _Calm] = {}
        self._ratios: list[float] = []  # of the block that has begun
        self._block_ms = 0.0
        self._blocks: deque[float] = deque(maxlen=_NUM_BLOCKS)

    @property
    def ratio(self) -> float:
        """How many times slower than calm the last whole block was; 1 where none is known."""
        return self._blocks[-1] if self._blocks else 1.0

    def hear(self, stats: EngineStats) -> None:
        """Of a step that encoded, or decoded and read nothing; others say nothing about the pace."""
        cell = _cell_of(stats)
        if cell is None or not stats.forward_ms:
            return
        took_ms = stats.forward_ms / max(1, stats.num_encoded_tokens)
        calm = self._calm.setdefault(cell, _Calm())
        if calm.best_ms:
            self._compare(stats.forward_ms, took_ms / calm.best_ms)
        calm.learn(took_ms)

    def forget_worker(self) -> None:
        """The next steps are of another process; what is calm is the same for both."""
        self.is_slow = False
        self._blocks.clear()
        self._ratios.clear()
        self._block_ms = 0.0

    def _compare(self, step_ms: float, ratio: float) -> None:
        self._ratios.append(ratio)
        self._block_ms += step_ms
        if len(self._ratios) < _BLOCK_STEPS or self._block_ms < _BLOCK_MS:
            return
        self._blocks.append(median(self._ratios))
        self._ratios.clear()
        self._block_ms = 0.0
        if self.is_slow:
            self.is_slow = self.ratio >= FINE
        else:
            self.is_slow = len(self._blocks) == _NUM_BLOCKS and min(self._blocks) >= SLOW
