"""What was made once and may be wanted again, up to some size together."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by what they were made of; the least recently used go first. Thread-safe."""

    def __init__(self, most: int, size_of: Callable[[V], int]) -> None:
        self._lock = Lock()
        self._values: OrderedDict[K, V] = OrderedDict()
        self._most, self._size_of = most, size_of
        self._size = 0

    def find(self, key: K) -> V | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: K, value: V) -> None:
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._size += self._size_of(value)
            while self._size > self._most:
                self._size -= self._size_of(self._values.popitem(last=False)[1])
