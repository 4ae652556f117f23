"""One pull of a model at a time, whichever process does it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inference.hub_talk import HubError

_LOCK = ".pulling"


@contextmanager
def held_alone(path: Path, name: str) -> Iterator[None]:
    """The directory of a model, which is there. Raises HubError while another process holds it.

    The file stays: were it taken away, one process could lock the old and another a new one.
    """
    with (path / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HubError(f"{name} is being pulled by another process.") from None
        yield
