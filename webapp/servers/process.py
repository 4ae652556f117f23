"""Starting and stopping one embedded server process.

Liveness is a lock, not a pid: the server inherits a locked file, so the lock is free exactly when
it and all its children are gone, whatever pid a stale file names and whoever has that pid now.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from webapp.servers import launcher

_LAUNCHER = [sys.executable, "-I", "-S", launcher.__file__]
_LOG_TAIL_CHARS = 1500


class ServerFailed(Exception):
    """An embedded server did not start; the message holds the end of its log."""


class StillRunning(ServerFailed):
    """A process of an earlier start holds the lock."""


def take_lock(path: Path, *, wait_s: float) -> int:
    """The file descriptor of a lock that the server is to inherit. Close it, never unlock it.

    Raises StillRunning if another process holds it for longer than `wait_s`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise StillRunning(f"{path.stem} of an earlier start is still running") from None
            time.sleep(0.05)
        else:
            return descriptor


def spawn(
    command: Sequence[str | Path],
    *,
    log_path: Path,
    lock: int,
    identity: str = "self",
    death_signal: signal.Signals,
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own; it gets `death_signal` when this process ends.

    Call it from the main thread: the kernel counts the end of the calling thread as ours.
    """
    with log_path.open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            _launch(command, identity, death_signal),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock],
            start_new_session=True,
        )


def run(
    command: Sequence[str | Path], *, identity: str = "self", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end with its output captured, stderr among it."""
    return subprocess.run(  # noqa: S603
        _launch(command, identity, signal.SIGKILL),
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def can_become(identity: str, paths: Sequence[Path]) -> bool:
    """Whether `identity` can be taken here, and then gets through to every path."""
    return run(["--probe", *paths], identity=identity).returncode == 0


def stop(process: subprocess.Popen[bytes], first: signal.Signals, *, timeout_s: float) -> None:
    """Ask with `first`, and after `timeout_s` end it and its session for good."""
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
    kill_session(process)


def kill_session(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def log_tail(log_path: Path) -> str:
    if not log_path.exists():
        return "(no log)"
    return log_path.read_text(errors="replace")[-_LOG_TAIL_CHARS:].strip()


def _launch(
    command: Sequence[str | Path], identity: str, death_signal: signal.Signals
) -> list[str]:
    own = [str(os.getpid()), identity, str(int(death_signal))]
    return [*_LAUNCHER, *own, *map(str, command)]
