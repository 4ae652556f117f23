"""A worker's stay in memory: whether it is in use, and when it has to sleep.

It sleeps once it is out of use, where another model waits for its memory, or after a while. Knows
neither its process nor its requests; its supervisor does.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from inference.residency import Residency


class Stay:
    """`sleep` has to end the worker of a model that is out of use, and to call `leave`.

    `review` is called when it may have become another matter which requests may board.
    """

    def __init__(
        self,
        name: str,
        residency: Residency,
        *,
        model: str,
        sleep_after_s: float | None,
        sleep: Callable[[], None],
        review: Callable[[], None],
    ) -> None:
        self.name = name
        self.model = model
        self.residency = residency
        self._sleep_after_s = sleep_after_s
        self._sleep = sleep
        self._review = review
        self._is_used = True  # until it turns out that nobody is left who waited for it
        self._retires_since_s: float | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @contextmanager
    def room(self, residency: Residency, needed_bytes: int, *, is_further: bool) -> Iterator[None]:
        """Within, the worker waits for memory and then has it.

        Raises ModelTooLarge, or NoSpareMemory where the model has another worker.
        """
        self.residency = residency
        self._is_used = True
        self._retires_since_s = None
        with residency.room(
            self.name, needed_bytes, self._retire, self.model, is_further=is_further
        ):
            try:
                yield
            finally:
                self._set_alarm(None)

    @property
    def is_waiting(self) -> bool:
        return self.residency.is_waiting(self.name)

    async def granted(self) -> None:
        """Waits until the memory is the model's."""
        await self.residency.granted(self.name)

    def settle(self, held_bytes: int) -> None:
        """It has loaded, and takes so much."""
        self.residency.settle(self.name, held_bytes)

    def is_too_late(self, since_s: float) -> bool:
        """Whether a request came behind those for whom this model has to make room."""
        return self._retires_since_s is not None and since_s > self._retires_since_s

    def use(self) -> None:
        """A request has boarded."""
        self._is_used = True
        self._set_alarm(None)
        self.residency.use(self.name)

    def rest(self) -> None:
        """No request is on board, or may board now."""
        if self._retires_since_s is not None:
            self._sleep()
        elif self._is_used:
            self._is_used = False
            self._set_alarm(self._sleep_after_s)
            self.residency.rest(self.name)

    def leave(self) -> None:
        """Its worker is being ended."""
        self._set_alarm(None)
        self.residency.leave(self.name)

    def _retire(self, is_needed: bool) -> None:
        if not is_needed:
            self._retires_since_s = None
        elif self._retires_since_s is None:
            self._retires_since_s = monotonic()
        self._review()

    def _set_alarm(self, after_s: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if after_s is not None:
            self._alarm = asyncio.get_running_loop().call_later(after_s, self._sleep)
