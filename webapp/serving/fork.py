"""Children that are forked from the supervisor, which has everything imported already.

The supervisor holds no threads, no database connection and no event loop, so a fork is safe, and
a child that crashed is back within a moment.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable

from webapp.servers.launcher import die_with_parent, name_process

logger = logging.getLogger(__name__)


def fork(name: str, main: Callable[[], None], *, close: tuple[int, ...] = ()) -> int:
    """Run `main` in a child with a session of its own, which the kernel kills with its parent.

    The child is called vitrine-NAME. `close` are descriptors of the parent that it must not keep.
    Returns the pid.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent_pid = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for descriptor in close:
            os.close(descriptor)
        die_with_parent(parent_pid, signal.SIGKILL)
        name_process(f"vitrine-{name}")
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        logger.exception("a child process failed")
    finally:
        # Not sys.exit: what the parent registered to run at its end is not ours to run.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def call_in_child(function: Callable[[], str]) -> tuple[int, str]:
    """The exit code and the answer of `function`, run in a child to its end."""
    reader, writer = os.pipe()

    def main() -> None:
        with os.fdopen(writer, "w") as answer:
            answer.write(function())

    pid = fork("prepare", main, close=(reader,))
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), text
