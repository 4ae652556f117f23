"""The parent of everything: starts it in order, restarts what dies, ends it in order.

It stays small on purpose: no threads, no database connection, no event loop, neither twisted nor
torch, so that it can fork children which start at once and so that nothing can take it down.
"""

import gc
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from webapp.logs import rotate, rotate_appended
from webapp.servers.postgres import Postgres
from webapp.servers.process import ServerFailed
from webapp.servers.valkey import Valkey
from webapp.serving.console import announce, say
from webapp.serving.database import other_site
from webapp.serving.errors import CannotServe
from webapp.serving.fork import call_in_child
from webapp.serving.listener import listen, url_of
from webapp.serving.lock import hold_lock
from webapp.serving.prepare import preload, prepare
from webapp.serving.services import ForkedService, ServerService, Service, stop
from webapp.serving.web import run_web
from webapp.serving.worker import run_worker

_WEB_READY_S = 60.0
_WORKER_STOP_S = 10.0
_SERVER_STOP_S = 30.0
_ROTATE_EVERY_S = 3600.0
_CALM_AFTER_S = 60.0  # a service that lived that long has not failed to start
_LONGEST_PAUSE_S = 15.0


class StopRequested(BaseException):
    """SIGTERM, SIGINT or SIGHUP during the start. No Exception: half of the start is imports of
    others, and one of them may take an Exception for its own and go on, or fail for another reason."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to serve. `embedded_*` are false where the environment names another server.

    People find it at `site_url`, which may be a proxy's."""

    data_dir: Path
    host: str
    port: int
    site_url: str
    embedded_postgres: bool
    embedded_redis: bool
    drain_timeout_s: float
    log_file: Path
    key_marks: tuple[str, ...] = ()


@dataclass
class _Watched:
    """A service and its recent failures."""

    service: Service
    started_s: float = 0.0
    num_failures: int = 0
    restart_s: float | None = None

    def start(self) -> None:
        self.restart_s = None
        self.started_s = time.monotonic()
        self.service.start()

    def note_death(self) -> float:
        """Plan the restart: at once at first, later and later if it keeps dying. Returns when."""
        now = time.monotonic()
        if now - self.started_s > _CALM_AFTER_S:
            self.num_failures = 0
        pause_s = min(_LONGEST_PAUSE_S, 0.25 * 2**self.num_failures) if self.num_failures else 0.0
        self.num_failures += 1
        self.restart_s = now + pause_s
        return pause_s


@dataclass
class Supervisor:
    plan: Plan
    _stop_requests: int = 0
    _starting: bool = True
    _watched: list[_Watched] = field(default_factory=list)
    _listener: socket.socket | None = None
    _web_is_ready: int | None = None

    def run(self) -> int:
        """Serve until a signal ends it. Returns the exit code."""
        self._wakeup, write_end = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake us up
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Whoever says nohup wants it to outlive the console.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        code = 0
        try:
            self._start()
            self._starting = False
            self._watch()
        except StopRequested:
            pass
        except (CannotServe, ServerFailed) as error:
            announce(str(error))
            code = 1
        except OSError as error:  # a disk that is full, or somebody else's file
            if not error.filename:
                raise
            announce(f"{error.filename}: {error.strerror}.")
            code = 1
        except Exception as error:
            # Python itself makes a RuntimeError of what comes up while a class is made.
            if not isinstance(error.__cause__ or error.__context__, StopRequested):
                raise
        finally:
            self._starting = False
            self._shut_down()
        return code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop_requests += 1
        if self._starting:
            self._starting = False
            raise StopRequested

    # --- start ----------------------------------------------------------------------------------

    def _start(self) -> None:
        plan = self.plan
        url = url_of(plan.host, plan.port)
        self._lock = hold_lock(plan.data_dir, url, plan.key_marks)
        self._listener = listener = listen(plan.host, plan.port)
        self._rotate_logs()
        self._start_servers()
        setup_token = self._prepare()
        gc.freeze()  # what is imported by now stays shared with the children
        self._start_web()
        announce(f"Vitrine is ready at {url}")
        if setup_token:
            announce(f"Create the administrator at {plan.site_url}/setup/{setup_token}")
        self._watch_from_now(ForkedService("worker", run_worker, close=(listener.fileno(),)))

    def _start_servers(self) -> None:
        servers: list[Postgres | Valkey] = []
        if self.plan.embedded_redis:
            valkey = Valkey(self.plan.data_dir)
            self._watch_from_now(ServerService("valkey", valkey, signal.SIGTERM))
            servers.append(valkey)
        if self.plan.embedded_postgres:
            postgres = Postgres(self.plan.data_dir)
            if not postgres.cluster.exists():
                if problem := other_site(self.plan.data_dir):
                    raise CannotServe(problem)
                say("Making the database")
            self._watch_from_now(ServerService("postgres", postgres, signal.SIGINT))
            servers.append(postgres)
        preload()  # while they start
        for server in servers:
            server.wait_ready()
        if servers:
            say("Database and queue are up")

    def _prepare(self) -> str | None:
        """Migrations and static files. Returns the token of the set-up link, if one is open."""
        code, answer = call_in_child(prepare)
        if code != 0:
            raise CannotServe(f"The start failed; see {self.plan.log_file}.")
        prepared = json.loads(answer)
        if prepared["problem"]:
            raise CannotServe(prepared["problem"])
        token: str | None = prepared["setup_token"]
        return token

    def _start_web(self) -> None:
        """Start the web process, and wait until it answers; later ones are not waited for."""
        reader, self._web_is_ready = os.pipe()
        web = ForkedService("web", self._run_web)
        self._watch_from_now(web)
        os.close(self._web_is_ready)
        self._web_is_ready = None
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            _wait_for_ready(pipe.fileno(), web)

    def _run_web(self) -> None:
        assert self._listener is not None
        run_web(
            self._listener,
            drain_timeout_s=self.plan.drain_timeout_s,
            is_ready=self._web_is_ready,
        )

    def _watch_from_now(self, service: Service) -> None:
        watched = _Watched(service)
        self._watched.append(watched)
        watched.start()

    # --- watch ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        next_rotation_s = time.monotonic() + _ROTATE_EVERY_S
        while not self._stop_requests:
            for watched in self._watched:
                self._look_after(watched)
            if time.monotonic() > next_rotation_s:
                self._rotate_logs()
                next_rotation_s += _ROTATE_EVERY_S
            self._sleep_until(next_rotation_s)

    def _rotate_logs(self) -> None:
        with suppress(OSError):  # of a disk that is full: it is tried again
            rotate(self.plan.log_file)
            for server in (Postgres(self.plan.data_dir), Valkey(self.plan.data_dir)):
                rotate_appended(server.log_path)

    def _look_after(self, watched: _Watched) -> None:
        if watched.restart_s is not None:
            if time.monotonic() >= watched.restart_s:
                self._start_again(watched)
            return
        code = watched.service.exit_code()
        if code is not None:
            _note_death(watched, f"ended ({_how(code)})")

    def _start_again(self, watched: _Watched) -> None:
        """A machine that has no process or no disk to give has them again in a while."""
        try:
            watched.start()
        except (OSError, ServerFailed) as error:
            _note_death(watched, f"did not start ({error})")

    def _sleep_until(self, latest_s: float) -> None:
        due = [watched.restart_s for watched in self._watched if watched.restart_s is not None]
        timeout_s = max(0.0, min([latest_s, *due]) - time.monotonic())
        if select.select([self._wakeup], [], [], timeout_s)[0]:
            os.read(self._wakeup, 4096)

    # --- end ------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Web and worker drain side by side; then the servers that both use end."""
        if not self._watched:
            return
        say("Ending; once more Ctrl-C ends it at once")
        services = {watched.service.name: watched.service for watched in self._watched}
        limits = {"web": self.plan.drain_timeout_s + 7.0, "worker": _WORKER_STOP_S}
        if worker := services.get("worker"):
            worker.ask_to_stop()
        for name in ("web", "worker", "valkey", "postgres"):
            if name in services:
                timeout_s = limits.get(name, _SERVER_STOP_S)
                stop(services[name], timeout_s=timeout_s, hurry=lambda: self._stop_requests > 1)
            if name == "web" and self._listener is not None:
                self._listener.close()  # from now on visitors are refused instead of waiting
        say("Ended")


def _wait_for_ready(reader: int, web: ForkedService) -> None:
    deadline = time.monotonic() + _WEB_READY_S
    while time.monotonic() < deadline:
        if select.select([reader], [], [], 0.05)[0]:
            if os.read(reader, 1):
                return
            break
        if web.exit_code() is not None:
            break
    raise CannotServe("The web process did not start; see the log file.")


def _note_death(watched: _Watched, how: str) -> None:
    pause_s = watched.note_death()
    when = "now" if pause_s == 0 else f"in {pause_s:.1f} s"
    say(f"{watched.service.name} {how}; starting it again {when}")


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
