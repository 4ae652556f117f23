"""Looks at images, which go on beside steps: a tower of hundreds of millions of weights takes seconds
for each tile on a processor, and nobody's answer should wait for that. Imports no torch."""

import queue
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Looks(Generic[K, T]):
    """Looks by what they look at, one after the other, in a thread that ends with the process."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Callable[[], T], Future[T]]] = queue.SimpleQueue()
        self._futures: dict[K, Future[T]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, key: K, look: Callable[[], T]) -> None:
        """Unless it has begun."""
        if key in self._futures:
            return
        future = self._futures[key] = Future()
        self._queue.put((look, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="looking", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            look, future = self._queue.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(look())
            except BaseException as error:
                future.set_exception(error)

    def take_done(self, timeout_s: float = 0.0) -> list[tuple[K, T | BaseException]]:
        """What looks that have ended came to, or what they raised, each once; waits so long for one."""
        if timeout_s and self._futures:
            wait(self._futures.values(), timeout_s, return_when=FIRST_COMPLETED)
        outcomes: list[tuple[K, T | BaseException]] = []
        for key in [key for key, future in self._futures.items() if future.done()]:
            future = self._futures.pop(key)
            error = future.exception()
            outcomes.append((key, future.result() if error is None else error))
        return outcomes

    def forget_all(self) -> None:
        """Nothing goes on any more, and nothing is kept."""
        for future in self._futures.values():
            future.cancel()
        wait(self._futures.values())
        self._futures.clear()
