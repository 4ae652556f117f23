"""The child that reads a file: started, waited for, ended.

A process of its own and not a fork: who asks may have threads, connections and secrets. It bounds itself
before it looks at the file (child.py); the wall clock is kept here, where it cannot be stopped.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from retrieval.giving_way import give_way
from retrieval.parsing.errors import Unreadable
from retrieval.parsing.limits import Limits
from retrieval.parsing.messages import (
    Answer,
    BadAnswer,
    Request,
    max_answer_bytes,
    packed_request,
    unpacked_answer,
)

_ROOT = Path(__file__).resolve().parents[2]
# Where Python looks for modules is said (PYTHONPATH) instead of found out: half of the start.
_COMMAND = ["-P", "-S", "-m", "retrieval.parsing.child"]
_BROKEN = "The file could not be read: it is damaged, or not what its kind should be."
_TIMED_OUT = "Reading the file took too long. Split it, or save it in a simpler format."
_OUT_OF_MEMORY = "Reading the file takes more memory than it may. Split it, or save it anew."
# Libraries in C end a process where memory ends: abort(), or an instruction that is none.
_OUT_OF_MEMORY_SIGNALS = (signal.SIGKILL, signal.SIGABRT, signal.SIGILL, signal.SIGTRAP)


def ask_child(request: Request) -> Answer:
    """What the child answers, within the request's limits. Raises Unreadable in its place if it dies."""
    deadline = time.monotonic() + request.limits.timeout_s
    with tempfile.TemporaryDirectory(prefix="vitrine-parsing-") as folder:
        process = _start(request, Path(folder))
        give_way(process.pid)
        try:
            data = _read(process, packed_request(request), deadline, request.limits)
        except TimeoutError:
            raise Unreadable("timed_out", _TIMED_OUT) from None
        finally:
            _end(process)
    try:
        return unpacked_answer(data)
    except BadAnswer:
        raise _cause_of_death(process.returncode) from None


def tesseract() -> str:
    """The path of the OCR program, "" if it is not installed."""
    return shutil.which("tesseract") or ""


def _start(request: Request, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, *_COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(request.fd,),
        cwd=folder,
        env=environment(folder),
        start_new_session=True,  # so that it ends together with what it starts
    )


def environment(folder: Path) -> dict[str, str]:
    """Nothing of ours: there are passwords in it."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(os.path.isabs, sys.path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "OMP_THREAD_LIMIT": "1",  # tesseract's threads wait for each other more than they work
    }
    kept = ("TESSDATA_PREFIX",)
    return env | {name: os.environ[name] for name in kept if name in os.environ}


def _read(
    process: "subprocess.Popen[bytes]", request: bytes, deadline: float, limits: Limits
) -> bytes:
    """All that the child writes. Raises TimeoutError."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin as stdin:
            stdin.write(request)  # smaller than a pipe's buffer, so this never waits
    except BrokenPipeError:
        pass  # it died at once; what it died of is asked afterwards
    most, data = max_answer_bytes(limits), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(data) <= most:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), 2**20)
            if not piece:
                break
            data += piece
    return bytes(data)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """It and what it has started, whatever state they are in.

    Nobody has waited for it yet, so its number is still its own; and a process that has died by itself
    keeps its cause of death.
    """
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _cause_of_death(returncode: int) -> Unreadable:
    if -returncode == signal.SIGXCPU or -returncode == signal.SIGALRM:
        return Unreadable("timed_out", _TIMED_OUT)
    if -returncode in _OUT_OF_MEMORY_SIGNALS:
        return Unreadable("out_of_memory", _OUT_OF_MEMORY)
    return Unreadable("broken", _BROKEN)
