"""One `serve` per DATA_DIR.

The children inherit the lock, so it is free only when everything of an earlier start has ended.
"""

import fcntl
import json
import os
import time
from pathlib import Path

from webapp.serving.errors import CannotServe

_ORPHANS_WAIT_S = 20.0


def hold_lock(data_dir: Path, address: str) -> int:
    """The descriptor of the lock, to be kept open. Raises CannotServe if another serve runs."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data_dir / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _ORPHANS_WAIT_S
    while not _try(descriptor):
        pid, other = _holder(descriptor)
        # A supervisor that was killed leaves children which are just about to end.
        if _is_serving(pid) or time.monotonic() > deadline:
            raise CannotServe(
                f"Vitrine already runs on this DATA_DIR ({data_dir}): pid {pid}, at {other}."
            )
        time.sleep(0.05)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "address": address}).encode(), 0)
    return descriptor


def is_served(data_dir: Path) -> bool:
    """Whether a serve, or what is left of one, runs on this DATA_DIR."""
    path = data_dir / "serve.lock"
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)


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
