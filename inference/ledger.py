"""Which models may be in memory: a budget in bytes, who holds how much, and who has to make room.

Integers and names only. Whoever asks first is served first; a later one goes ahead only where that
takes nothing from those before it. Room is made by models that nobody uses, the least recently used
first, and before them those whose model has another worker; where they are not enough, those in use
make room as soon as they are idle, and hear of it now so that they take on nothing new. Therefore
everybody who asks is served, whatever the others do.

The sum of what is held stays within the budget, but for one case: a model that turns out to take more
than it was granted holds what it takes. Nothing is granted then until enough has been given back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from inference.errors import ModelTooLarge


class NoSpareMemory(Exception):
    """There is none for a further worker of a model: it does with those that it has."""


@dataclass(slots=True)
class Account:
    """One worker of a model. `held_bytes` is None while it waits for `needed_bytes`.

    `last_used` counts uses over all models. `is_leaving`: it gives back what it holds and needs
    nothing more to do so. `is_further`: the model had another worker, in another ledger, when it asked.
    """

    name: str
    model: str
    needed_bytes: int
    is_further: bool = False
    held_bytes: int | None = None
    is_busy: bool = True
    is_leaving: bool = False
    last_used: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """`granted` were waiting and may load now. `retiring` have to go, the busy ones once idle."""

    granted: tuple[str, ...]
    retiring: frozenset[str]


class Ledger:
    """`measure` says how many bytes there are for all models together, and may count too little of what
    those take that are there."""

    def __init__(self, measure: Callable[[], int]) -> None:
        self._measure = measure
        self._accounts: dict[str, Account] = {}  # in the order in which they asked
        self._uses = count(1)
        self._budget_bytes = 0

    def budget_bytes(self) -> int:
        """Measured again while there is no account, and before somebody has to wait or goes without.

        A process that follows another may have found the memory of its workers not yet given back.
        """
        if not self._accounts:
            self._budget_bytes = self._measure()
        return self._budget_bytes

    @property
    def held_bytes(self) -> int:
        return sum(account.held_bytes or 0 for account in self._accounts.values())

    def ask(
        self, name: str, needed_bytes: int, model: str = "", *, is_further: bool = False
    ) -> None:
        """Wait for so much, as one who is busy. Raises ModelTooLarge where that can never be.

        A further worker of a model does not wait, and nobody makes room for it: it raises NoSpareMemory
        where no memory is free that nobody waits for. `is_further`: the other one is in another ledger.
        """
        assert name not in self._accounts
        if needed_bytes > self.budget_bytes() - self.held_bytes:
            self._measure_again()
        budget_bytes = self._budget_bytes
        if needed_bytes > budget_bytes:
            raise ModelTooLarge(
                name, needed_bytes=needed_bytes, available_bytes=budget_bytes, for_models=True
            )
        has_another = is_further or self._has_another(model or name)
        if has_another and not self.has_spare(needed_bytes):
            raise NoSpareMemory
        self._accounts[name] = Account(
            name, model or name, needed_bytes, is_further, last_used=next(self._uses)
        )

    def _measure_again(self) -> None:
        """Others may have given memory back since. What they took is known when it fails."""
        if self._accounts:
            self._budget_bytes = max(self._budget_bytes, self._measure())

    def has_spare(self, needed_bytes: int) -> bool:
        """Whether so much is free, and promised to nobody."""
        is_anyone_waiting = any(a.held_bytes is None for a in self._accounts.values())
        return not is_anyone_waiting and self.held_bytes + needed_bytes <= self.budget_bytes()

    def _has_another(self, model: str) -> bool:
        return any(a.model == model and not a.is_leaving for a in self._accounts.values())

    def settle(self, name: str, held_bytes: int) -> None:
        """A model has loaded and takes so much, less or more than it was granted."""
        self._accounts[name].held_bytes = held_bytes

    def use(self, name: str) -> None:
        account = self._accounts[name]
        account.is_busy = True
        account.last_used = next(self._uses)

    def rest(self, name: str) -> None:
        self._accounts[name].is_busy = False

    def leave(self, name: str) -> None:
        """It is giving back what it holds; `close` says when that is done."""
        self._accounts[name].is_leaving = True

    def close(self, name: str) -> None:
        """It holds nothing any more, or waits no longer."""
        del self._accounts[name]

    def decide(self) -> Decision:
        """Grant what can be granted now, and say who has to make room for the others."""
        holders = [a for a in self._accounts.values() if a.held_bytes is not None]
        leaving = [a for a in holders if a.is_leaving]
        staying = [a for a in holders if not a.is_leaving]
        staying.sort(key=lambda a: (a.is_busy, a.last_used))
        last_of = {a.model: a for a in staying if not a.is_further}
        # The first to go is the last.
        staying.sort(
            key=lambda a: (a.is_busy, last_of.get(a.model) is a, a.last_used), reverse=True
        )
        free_bytes = self._budget_bytes - self.held_bytes
        # What will be free once all who have to go have gone, less what has been promised.
        spare_bytes = free_bytes + sum(a.held_bytes or 0 for a in leaving)
        granted, retiring = [], {a.name for a in leaving}
        for account in [a for a in self._accounts.values() if a.held_bytes is None]:
            needed_bytes = account.needed_bytes
            if needed_bytes <= free_bytes:
                account.held_bytes = needed_bytes
                granted.append(account.name)
                staying.insert(0, account)
                free_bytes -= needed_bytes
            while spare_bytes < needed_bytes and staying:
                goes = staying.pop()
                retiring.add(goes.name)
                spare_bytes += goes.held_bytes or 0
            spare_bytes -= needed_bytes
            if spare_bytes < 0:
                break  # it goes before all those behind it
            # What those behind it may take now: not what comes free only when others have gone for them.
            free_bytes = min(free_bytes, spare_bytes)
        return Decision(tuple(granted), frozenset(retiring))
