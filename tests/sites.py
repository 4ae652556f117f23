"""Real sites for tests: `manage.py serve` in a process of its own, which may be killed."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import psutil
import psycopg

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "correct horse battery"
ADMIN_EMAIL = "admin@example.org"
_PROCESS_NAMES = {
    "postgres": "postgres",
    "valkey": "valkey-server",
    "web": "vitrine-web",
    "worker": "vitrine-worker",
}
_addresses = (f"{a}.{b}.{c}" for a in range(256) for b in range(256) for c in range(1, 255))
_visitors: list[httpx2.Client] = []
_NOT_COPIED = shutil.ignore_patterns("sockets", "*.lock", "logs")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], Any], *, timeout_s: float = 40.0, what: str = "it") -> Any:
    """The first true value of `condition`, asked every 20 ms."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {timeout_s} s")
        time.sleep(0.02)
    return value


class Site:
    """One `manage.py serve`. Use as a context manager; it is stopped at the end."""

    def __init__(self, data_dir: Path, port: int | None = None, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "tests.site_settings",
            "VITRINE_PRELOAD": "false",
            "VITRINE_CHAT_MEANING": "false",  # a model less to load; tests of it say otherwise
            "VITRINE_SIGNUP_WORK_BITS": "0",  # visitors run no scripts
            "TRUSTED_PROXIES": "127.0.0.1",  # visitors name their addresses
            **environment,
        }
        self.lines: list[str] = []
        self._has_administrator = False

    def start(self, *, wait: bool = True) -> Self:
        own = {"DATA_DIR": str(self.data_dir), "PORT": str(self.port), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "serve"],
            env={**os.environ, **own, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()
        if wait:
            self.wait_ready()
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: list[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            lines.extend(line.rstrip("\n") for line in process.stdout)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        wait_until(
            lambda: "Vitrine is ready" in self.output or self.process.poll() is not None,
            timeout_s=timeout_s,
            what=f"ready line of {self.output}",
        )
        assert self.process.poll() is None, self.output

    def wait_end(self, *, timeout_s: float = 40.0) -> int:
        code = self.process.wait(timeout_s)
        time.sleep(0.05)  # the reader's last lines
        return code

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.wait_end()
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """kill -9 of the supervisor and everything below it."""
        for process in [*self.descendants(), psutil.Process(self.process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, name: str) -> psutil.Process:
        """ "postgres", "valkey", "web" or "worker"."""
        for process in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == _PROCESS_NAMES[name]:
                    return process
        raise LookupError(name)

    # --- visitors -------------------------------------------------------------------------------

    @property
    def setup_url(self) -> str | None:
        """The set-up link that the console printed last."""
        found = re.findall(r"http://\S+/setup/\S+", self.output)
        return found[-1] if found else None

    def visitor(self) -> httpx2.Client:
        """A browser without a session, at an address of its own: attempts are counted by it.

        It may outlive its site, as browsers do; `close_visitors` closes them all.
        """
        address = f"10.{next(_addresses)}"
        headers = {"X-Forwarded-For": address}
        _visitors.append(httpx2.Client(base_url=self.url, headers=headers, timeout=30))
        return _visitors[-1]

    def set_up(self) -> httpx2.Client:
        """Make the administrator by the link, or sign in if there is one. Signed in."""
        if (
            not self._has_administrator
        ):  # the link stands in the line behind the one of `wait_ready`
            with contextlib.suppress(AssertionError):
                wait_until(lambda: self.setup_url, timeout_s=1.0)
        if self.setup_url is None or self._has_administrator:
            return self.sign_in(ADMIN_EMAIL)
        visitor = self.visitor()
        path = self.setup_url.removeprefix(self.url)
        form = {"name": "Admin", "email": ADMIN_EMAIL, "password": PASSWORD}
        response = post_form(visitor, path, form)
        assert response.status_code == 302, response.text
        self._has_administrator = True
        return visitor

    def sign_up(self, name: str) -> httpx2.Client:
        """A new user NAME@example.org, signed in."""
        visitor = self.visitor()
        form = {"name": name, "email": email_of(name), "password1": PASSWORD}
        response = post_form(visitor, "/accounts/signup/", form)
        assert response.status_code == 302, response.text
        return visitor

    def sign_in(self, email: str) -> httpx2.Client:
        visitor = self.visitor()
        form = {"login": email, "password": PASSWORD}
        response = post_form(visitor, "/accounts/login/", form)
        assert response.status_code == 302, response.text
        return visitor

    def developers_key(self) -> str:
        """Of somebody who signs up for it."""
        self.sign_up("developer").close()
        return self.create_api_key(email_of("developer"))

    def create_api_key(self, email: str, *scopes: str, name: str = "tests") -> str:
        """A key like those of `manage.py createapikey`, which takes seconds to start."""
        from webapp.scopes import USUAL

        secret = f"vt_{secrets.token_urlsafe(32)}"
        num_made = self.execute(
            "INSERT INTO webapp_apikey (user_id, name, prefix, secret_hash, scopes, model_names,"
            " created_at) SELECT id, %s, %s, %s, %s, '{*}', now() FROM webapp_user WHERE email = %s",
            name,
            secret[:11],
            sha256(secret.encode()).hexdigest(),
            list(scopes or USUAL),
            email,
        )
        assert num_made == 1, email
        return secret

    @contextlib.contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """To its database, where every row is seen: quicker than a command of Django's starts."""
        own = f"host={self.data_dir}/sockets user=vitrine dbname=vitrine"
        with psycopg.connect(self.environment.get("DATABASE_URL", own)) as connection:
            connection.execute("SET vitrine.scope = 'system'")
            yield connection

    def execute(self, sql: str, *values: Any) -> int:
        """Change rows. Returns how many."""
        with self.connection() as connection:
            return connection.execute(sql, values).rowcount

    @property
    def whole_environment(self) -> dict[str, str]:
        """Of commands; `serve` has a PORT as well."""
        return {**os.environ, **self.environment, "DATA_DIR": str(self.data_dir)}

    def manage(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env={**self.whole_environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


class SiteMaker:
    """A site's DATA_DIR goes when nobody holds the site any more: a run makes more than a hundred, each
    of 90 MB in memory.

    All are copies of `prepared`, which whoever comes first makes: other processes may have it too."""

    def __init__(self, folder: Path, prepared: Path) -> None:
        self.folder = folder
        self.prepared = prepared
        self.num_made = 0

    def __call__(self, **environment: str) -> Site:
        """A site whose database is made and migrated, not yet started."""
        data_dir = self._next_folder()
        shutil.copytree(self._prepared(), data_dir, ignore=_NOT_COPIED)
        return self._site(data_dir, environment)

    def empty(self, **environment: str) -> Site:
        """A site as on a bare machine."""
        return self._site(self._next_folder(), environment)

    @staticmethod
    def _site(data_dir: Path, environment: dict[str, str]) -> Site:
        site = Site(data_dir, **environment)
        weakref.finalize(site, shutil.rmtree, data_dir, ignore_errors=True)
        return site

    def _next_folder(self) -> Path:
        self.num_made += 1
        return self.folder / f"site{self.num_made}"

    def _prepared(self) -> Path:
        with self.prepared.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.prepared.exists():
                unfinished = self._next_folder()
                site = Site(unfinished).start(wait=False)
                try:
                    site.wait_ready(timeout_s=150)  # all migrations, and others compute meanwhile
                    # Tests are faster than people; those about limits set their own.
                    site.execute("UPDATE webapp_tier SET requests_per_minute = NULL")
                finally:
                    site.stop()
                unfinished.rename(self.prepared)
        return self.prepared


def close_visitors() -> None:
    while _visitors:
        _visitors.pop().close()


def email_of(name: str) -> str:
    return f"{name.lower()}@example.org"


def post_form(visitor: httpx2.Client, path: str, form: dict[str, str]) -> httpx2.Response:
    """Load the page of a form and send it as a browser would."""
    page = visitor.get(path)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    fields = {**form, "csrfmiddlewaretoken": token[1]} if token else form
    return visitor.post(path, data=fields)


def still_alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that run, zombies left out; psutil knows a reused pid by its start time."""
    alive = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


@contextlib.contextmanager
def running(site: Site) -> Iterator[Site]:
    with site:
        yield site
