"""Looks at images, which go on beside steps: a tower of hundreds of millions of weights takes seconds
for each tile on a processor, and nobody's answer should wait for that. Imports no torch."""

import os
import sys
import threading
from collections.abc import Callable, Collection, Hashable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_NICENESS = 10


class LookLeft(Exception):
    """Nobody wants what is being looked at."""


class Looks(Generic[K, T]):
    """Looks by what they look at, one after the other, in a thread that ends with the process.

    Nothing waits here but what is wanted now: who goes next is decided anew whenever `want` is called.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()  # around all below
        self._wanted: dict[K, Callable[[], T]] = {}
        self._under_way: K | None = None
        self._is_left = False
        self._done: dict[K, T | BaseException] = {}
        self._thread: threading.Thread | None = None

    def want(self, wanted: Iterable[tuple[K, Callable[[], T]]]) -> None:
        """What is to be looked at next, in this order, and nothing else; what has begun goes on."""
        with self._changed:
            self._wanted = {key: look for key, look in wanted if key not in self._begun}
            self._changed.notify_all()
            if self._wanted and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="looking", daemon=True)
                self._thread.start()

    def leave_unless(self, needed: Collection[K]) -> None:
        """What is under way and not among these stops others no longer than up to its next `go_on`."""
        with self._changed:
            if self._wanted and self._under_way not in needed:
                self._is_left = self._under_way is not None

    def go_on(self) -> None:
        """A look calls this now and then. Raises LookLeft in it where nobody wants it any more."""
        if self._is_left and threading.current_thread() is self._thread:
            raise LookLeft

    def begun(self) -> Collection[K]:
        """What is under way, or done and not taken."""
        with self._changed:
            return self._begun

    @property
    def _begun(self) -> set[K]:
        return {*self._done, *(() if self._under_way is None else (self._under_way,))}

    def _run(self) -> None:
        _give_way()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                self._under_way = key = next(iter(self._wanted))
                look = self._wanted.pop(key)
            outcome = _outcome_of(look)
            with self._changed:
                self._under_way, self._is_left = None, False
                if not isinstance(outcome, LookLeft):
                    self._done[key] = outcome
                self._changed.notify_all()

    def take_done(self, timeout_s: float = 0.0) -> list[tuple[K, T | BaseException]]:
        """What looks that have ended came to, or what they raised, each once; waits so long for one."""
        with self._changed:
            if timeout_s and (self._wanted or self._under_way is not None):
                self._changed.wait_for(lambda: self._done, timeout_s)
            done, self._done = self._done, {}
        return [*done.items()]

    def forget_all(self) -> None:
        """Nothing goes on any more, and nothing is kept."""
        with self._changed:
            self._wanted, self._is_left = {}, self._under_way is not None
            self._changed.wait_for(lambda: self._under_way is None)
            self._done = {}


def _give_way() -> None:
    """Steps go before looks: this thread, and those that it starts, are nicer than the others. Where
    niceness is a whole process's, as outside Linux, nothing is changed."""
    if sys.platform == "linux":
        with suppress(OSError):
            thread = os.PRIO_PROCESS, threading.get_native_id()
            os.setpriority(*thread, max(_NICENESS, os.getpriority(*thread)))


def _outcome_of(look: Callable[[], T]) -> T | BaseException:
    try:
        return look()
    except BaseException as error:
        return error
