"""When a worker that has died is followed by another one, and when it is given up."""

from collections import deque
from dataclasses import dataclass
from time import monotonic

MAX_FAILED_LOADS = 3  # processes in a row that died before they were ready
REST_S = 60.0  # after so many: a load that the kernel kills for its memory hurts the whole machine


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Why, and how long no request may try again."""

    message: str
    rest_s: float = 0.0


class Restarts:
    """The deaths of one worker's processes."""

    def __init__(self, max_per_minute: int) -> None:
        self._max_per_minute = max_per_minute
        self._deaths_s: deque[float] = deque()
        self._num_failed_loads = 0

    def forget(self) -> None:
        self._deaths_s.clear()
        self._num_failed_loads = 0

    def note_ready(self) -> None:
        self._num_failed_loads = 0

    def note_death(self, reason: str, *, is_failed_load: bool) -> GivenUp | None:
        """None: another process may follow, after `pause_s`."""
        now_s = monotonic()
        self._num_failed_loads += is_failed_load
        self._deaths_s.append(now_s)
        while self._deaths_s[0] < now_s - 60:
            self._deaths_s.popleft()
        if self._num_failed_loads >= MAX_FAILED_LOADS:
            message = f"{MAX_FAILED_LOADS} engine workers ended while they loaded the model"
            return GivenUp(f"{message}; the last one: {reason}.", REST_S)
        if len(self._deaths_s) > self._max_per_minute:
            return GivenUp(f"The engine worker died again and again: {reason}.")
        return None

    @property
    def pause_s(self) -> float:
        return float(min(10.0, 0.1 * 2 ** len(self._deaths_s)))
