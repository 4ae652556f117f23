"""The bounds that a child puts on itself before it opens a file. None of them can be lifted again."""

import ctypes
import os
import resource
import signal
import sys
import warnings
from typing import Any

from retrieval.parsing.limits import Limits

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_MOST_FILES = 64
# Of Python's audit hooks: no library may reach out, start a program or change a file.
_FORBIDDEN = (
    "socket.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "shutil.",
    "ftplib.",
    "smtplib.",
    "urllib.",
    "http.",
)


def close_cage(limits: Limits, *, may_start: str) -> None:
    """`may_start` is the path of the one program that may be started, "" for none."""
    warnings.simplefilter("ignore")
    _bound("RLIMIT_AS", limits.memory_bytes)
    _bound("RLIMIT_CPU", limits.cpu_s)
    _bound("RLIMIT_FSIZE", 0)
    _bound("RLIMIT_CORE", 0)
    _bound("RLIMIT_NOFILE", _MOST_FILES)
    # Should the parent die, nobody else would end it.
    signal.alarm(int(limits.timeout_s) + 5)
    if sys.platform == "linux":
        _leave_the_network()
    sys.addaudithook(_guard(may_start))


def _bound(name: str, amount: int) -> None:
    which = getattr(resource, name)
    _, hard = resource.getrlimit(which)
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    # Over the soft CPU limit comes a SIGXCPU, which says what it was; over the hard one a SIGKILL.
    more = amount + 5 if name == "RLIMIT_CPU" and hard == resource.RLIM_INFINITY else amount
    resource.setrlimit(which, (amount, more))


def _leave_the_network() -> None:
    """Into a namespace without interfaces, where the system lets us; the guard holds everywhere."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _guard(may_start: str) -> Any:
    def guard(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            # A number is what is open already, such as the pipe for the answer.
            if not isinstance(path, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                raise PermissionError("opening a file for writing")
        elif event == "subprocess.Popen":
            if not may_start or args[0] != may_start:
                raise PermissionError("starting a program")
        elif event.startswith(_FORBIDDEN):
            raise PermissionError(event)

    return guard
