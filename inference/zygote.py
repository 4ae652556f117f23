"""A process that has torch imported and forks workers: one is there at once, not after seconds.

Importing torch and transformers takes four seconds of a core, more than loading a small model. So it is
done once, here, and a worker that takes the place of a dead one, or wakes, is a fork that shares all
that. The zygote computes nothing: it has no threads, no OpenMP pool and no device, none of which
would survive a fork. It ends when the web process does, since its socket is closed then.
"""

import ctypes
import errno
import gc
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress

from inference import worker
from inference.config import WORKER_NAME

NAME = "vitrine-zygote"
_PR_SET_NAME, _PR_SET_PDEATHSIG = 15, 1
_libc = ctypes.CDLL(None)


def main() -> None:
    """`python -m inference.zygote FD`: fork workers as FD asks for, until it is closed."""
    _libc.prctl(_PR_SET_NAME, NAME.encode())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group; the parent decides
    requests = socket.socket(fileno=int(sys.argv[1]))
    worker.import_all()
    gc.collect()
    gc.freeze()  # a collection would touch, and so copy, what is shared
    children, children_end = os.pipe()
    os.set_blocking(children_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(children_end, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([requests.fileno(), children], [], [])
        if requests.fileno() in ready and not _serve(requests):
            return
        if children in ready:
            os.read(children, 4096)
            _reap()


def _serve(requests: socket.socket) -> bool:
    """Fork a worker with the environment, the socket and the standard error that came; False: no more.

    The answer is its process, as a file descriptor that no other process can come to stand for; or why
    there is none, in words. Those who run go on: they would end with this process.
    """
    message, descriptors, _, _ = socket.recv_fds(requests, 16, 3)
    if not message:
        return False
    try:
        pid, process = _fork(descriptors, requests)
    except OSError as error:
        requests.send(str(error).encode())
        return True
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    socket.send_fds(requests, [str(pid).encode()], [process])
    os.close(process)
    return True


def _fork(descriptors: list[int], requests: socket.socket) -> tuple[int, int]:
    """A worker's pid, and a descriptor of it. Raises OSError."""
    if len(descriptors) < 3:  # the kernel drops those for which there is no number left
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _be_worker(*descriptors, requests=requests, parent=parent)
    try:
        return pid, os.pidfd_open(pid)  # it is there, dead or alive: only `_reap` forgets it
    except OSError:
        os.kill(pid, signal.SIGKILL)
        raise


def _be_worker(
    environment: int, channel: int, stderr: int, *, requests: socket.socket, parent: int
) -> None:
    """Never returns."""
    try:
        _libc.prctl(_PR_SET_NAME, WORKER_NAME.encode())
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it died before we could say that we want to end with it
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        os.dup2(stderr, 2)
        os.close(stderr)
        os.environ.clear()
        with open(environment, "rb") as file:
            os.environ.update(pickle.load(file))  # noqa: S301
        worker.main(channel)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(0)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
