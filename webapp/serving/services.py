"""The four things that the supervisor keeps alive, seen as one kind."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Protocol

from webapp.servers import process as server_process
from webapp.servers.postgres import Postgres
from webapp.servers.valkey import Valkey
from webapp.serving.fork import fork

_POLL_S = 0.02


class Service(Protocol):
    name: str

    def start(self) -> None: ...

    def exit_code(self) -> int | None:
        """None while it runs. Reaps it, and sweeps what it left behind."""

    def ask_to_stop(self) -> None: ...

    def kill(self) -> None: ...


class ServerService:
    """An embedded server."""

    def __init__(self, name: str, server: Postgres | Valkey, stop_signal: signal.Signals) -> None:
        self.name = name
        self.server = server
        self.stop_signal = stop_signal

    def start(self) -> None:
        self.server.start()

    def exit_code(self) -> int | None:
        if self.server.process is None:
            return 0
        return self.server.process.poll()

    def ask_to_stop(self) -> None:
        if self.server.process is not None:
            self.server.process.send_signal(self.stop_signal)

    def kill(self) -> None:
        if self.server.process is not None:
            server_process.kill_session(self.server.process)


class ForkedService:
    """A process of our own code."""

    def __init__(self, name: str, main: Callable[[], None], *, close: tuple[int, ...] = ()) -> None:
        self.name = name
        self.main = main
        self.close = close
        self.pid = 0

    def start(self) -> None:
        self.pid = fork(self.name, self.main, close=self.close)

    def exit_code(self) -> int | None:
        if not self.pid:
            return 0
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self._sweep()
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def ask_to_stop(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.pid:
            self._sweep()
            os.waitpid(self.pid, 0)
            self.pid = 0

    def _sweep(self) -> None:
        """Engine workers and pool processes must not outlive the process that they work for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def stop(service: Service, *, timeout_s: float, hurry: Callable[[], bool]) -> None:
    """Ask it to end, and end it after `timeout_s`, or a second after `hurry` turns true."""
    if service.exit_code() is not None:
        return
    service.ask_to_stop()  # a second time does no harm
    deadline = time.monotonic() + timeout_s
    while service.exit_code() is None:
        if hurry():
            deadline = min(deadline, time.monotonic() + 1.0)
        if time.monotonic() > deadline:
            service.kill()
            return
        time.sleep(_POLL_S)
