"""How many answers this process writes."""

from collections.abc import Iterator
from contextlib import contextmanager

_num_active = 0


@contextmanager
def counted() -> Iterator[None]:
    """Within, one more answer is being written."""
    global _num_active
    _num_active += 1
    try:
        yield
    finally:
        _num_active -= 1


def num_active() -> int:
    """How many answers are being written in this process, for whomever."""
    return _num_active
