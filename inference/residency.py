"""The models of an engine share its memory: each has a room in it while its worker lives."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inference.ledger import Ledger

Retire = Callable[[bool], None]
"""Told True: take on nothing new, and `leave` once idle; False: go on, it is not needed any more."""


class Residency:
    """Asks the ledger whenever something has changed, and tells those whom it concerns.

    Lives on the event loop.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._granted: dict[str, asyncio.Event] = {}
        self._retire: dict[str, Retire] = {}
        self._retiring: frozenset[str] = frozenset()

    def budget_bytes(self) -> int:
        return self._ledger.budget_bytes()

    def has_spare(self, needed_bytes: int) -> bool:
        """Whether so much is free, and promised to nobody."""
        return self._ledger.has_spare(needed_bytes)

    @contextmanager
    def room(
        self,
        name: str,
        needed_bytes: int,
        retire: Retire,
        model: str = "",
        *,
        is_further: bool = False,
    ) -> Iterator[None]:
        """Within, a worker of a model waits for so much memory and then has it.

        Raises ModelTooLarge, or NoSpareMemory where the model has another worker.
        """
        self._ledger.ask(name, needed_bytes, model, is_further=is_further)
        self._granted[name] = asyncio.Event()
        self._retire[name] = retire
        try:
            self._decide()
            yield
        finally:
            self._ledger.close(name)
            del self._granted[name], self._retire[name]
            self._decide()

    def is_waiting(self, name: str) -> bool:
        return name in self._granted and not self._granted[name].is_set()

    async def granted(self, name: str) -> None:
        """Waits until the room is the model's."""
        await self._granted[name].wait()

    def settle(self, name: str, held_bytes: int) -> None:
        """A model has loaded and takes so much."""
        self._ledger.settle(name, held_bytes)
        self._decide()

    def use(self, name: str) -> None:
        self._ledger.use(name)

    def rest(self, name: str) -> None:
        """Nobody uses a model any more."""
        self._ledger.rest(name)
        self._decide()

    def leave(self, name: str) -> None:
        """A model gives its memory back; it leaves its room as soon as its worker has ended."""
        self._ledger.leave(name)

    def _decide(self) -> None:
        decision = self._ledger.decide()
        before, self._retiring = self._retiring, decision.retiring
        for name in decision.granted:
            self._granted[name].set()
        for name in decision.retiring | before:
            if name in self._retire:
                self._retire[name](name in self._retiring)  # which may have led to another decision
