"""One `serve` per DATA_DIR.

The children inherit the lock, so it is free only when everything of an earlier start has ended.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from webapp.serving.errors import CannotServe

_ORPHANS_WAIT_S = 20.0


def hold_lock(data_dir: Path, address: str, key_marks: Sequence[str] = ()) -> int:
    """The descriptor of the lock, to be kept open. Raises CannotServe if another serve runs."""
    descriptor = _open(data_dir / "serve.lock")
    deadline = time.monotonic() + _ORPHANS_WAIT_S
    while not _try(descriptor):
        pid, other = _holder(descriptor)
        # A supervisor that was killed leaves children which are just about to end.
        if _is_serving(pid) or time.monotonic() > deadline:
            raise CannotServe(
                f"Vitrine already runs on this DATA_DIR ({data_dir}): pid {pid}, at {other}."
            )
        time.sleep(0.05)
    _sign(descriptor, address, key_marks)
    return descriptor


def try_lock(data_dir: Path, address: str) -> int | str:
    """The descriptor of the lock, or the address of who has it."""
    descriptor = _open(data_dir / "serve.lock")
    if not _try(descriptor):
        _, other = _holder(descriptor)
        os.close(descriptor)
        return other
    _sign(descriptor, address)
    return descriptor


def key_marks_of_serve(data_dir: Path) -> list[str]:
    """Of the serve that runs on `data_dir`; none where there is none."""
    descriptor = _open(data_dir / "serve.lock")
    try:
        if _try(descriptor):
            return []
        return list(json.loads(os.pread(descriptor, 4096, 0)).get("key_marks", ()))
    except ValueError:
        return []  # it has the lock and is about to write
    finally:
        os.close(descriptor)


@contextmanager
def taking_part(data_dir: Path) -> Iterator[int]:
    """Around a command that may use what another has started: the other waits for its end.

    Yields what `wait_for_others` takes. Who comes while the other ends waits for that here.
    """
    descriptor = _open(data_dir / "commands.lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def others_take_part(descriptor: int) -> bool:
    return not _try(descriptor)


def wait_for_others(descriptor: int) -> None:
    """Return when nobody else takes part; nobody comes until the descriptor is closed."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _sign(descriptor: int, address: str, key_marks: Sequence[str] = ()) -> None:
    holder = {"pid": os.getpid(), "address": address, "key_marks": list(key_marks)}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> tuple[int, str]:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return int(holder["pid"]), str(holder["address"])
    except (ValueError, KeyError):
        return 0, "an unknown address"  # it has the lock and is about to write


def _is_serving(pid: int) -> bool:
    try:
        return b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
