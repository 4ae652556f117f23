"""The embedded Postgres: the real server from a wheel, on a Unix socket, as our direct child.

The cluster is made complete (role, database, extension) in a directory beside its place and then
renamed, so a half-made one is never used. The app connects as the role `vitrine`, which row-level
security binds; the superuser `postgres` is for set-up only.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from webapp.servers import process
from webapp.servers.binaries import postgres_binary
from webapp.servers.identity import Identity, own_tree, unprivileged_identity
from webapp.servers.process import ServerFailed
from webapp.servers.sockets import make_socket_directory, postgres_socket_directory

ROLE = DATABASE = "vitrine"

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "jit": "off",
    "wal_compression": "pglz",
    "random_page_cost": "1.1",
    "hnsw.ef_search": "100",
    "log_checkpoints": "off",
    # A failing statement and its row hold what people wrote: neither belongs in a log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
}
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_INITDB = [
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=PG_UNICODE_FAST",
    "--locale=C",
    "--no-instructions",
]
_RETRY_S = 0.02
_TRY_AGAIN_WORDS = ("lock file", "shared memory block")
_EARLIER_START_WAIT_S = 30.0


@dataclass
class Postgres:
    """One cluster under `data_dir`. `durable` false and `may_create_databases` are for tests."""

    data_dir: Path
    durable: bool = True
    may_create_databases: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _identity: Identity = field(init=False)

    @property
    def cluster(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def log_path(self) -> Path:
        return self.data_dir / "logs" / "postgres.log"

    def conninfo(self, *, user: str = ROLE, dbname: str = DATABASE) -> str:
        host = str(postgres_socket_directory(self.data_dir))
        return make_conninfo(host=host, user=user, dbname=dbname)

    def start(self) -> None:
        """Start the server without waiting for it; make the cluster first if there is none."""
        self.log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._take_lock()
        try:
            self._identity = unprivileged_identity(self.data_dir, self.cluster)
            own_tree(self.cluster, self._identity)
            if not self.cluster.exists():
                self._create_cluster()
            self._remove_stale_pid_files(make_socket_directory(self.data_dir))
            self.process = self._spawn(lock)
        finally:
            os.close(lock)

    def wait_ready(self, *, timeout_s: float = 120.0) -> None:
        """Return once a connection succeeds; crash recovery may take a while."""
        assert self.process is not None
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self._start_again_or_fail()
            try:
                psycopg.connect(self.conninfo(), connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(_RETRY_S)
            else:
                return
        raise ServerFailed(f"Postgres is not ready after {timeout_s:.0f} s:\n{self._log_tail()}")

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Fast shutdown: sessions are ended and everything is written."""
        if self.process is not None:
            process.stop(self.process, signal.SIGINT, timeout_s=timeout_s)

    def _take_lock(self) -> int:
        path = self.data_dir / "postgres.lock"
        try:
            return process.take_lock(path, wait_s=_EARLIER_START_WAIT_S)
        except process.StillRunning:
            # Its supervisor is gone and its shutdown hangs; the log makes up for the rest.
            with contextlib.suppress(OSError, ValueError, IndexError):
                os.kill(_pid_in(self.cluster / "postmaster.pid"), signal.SIGQUIT)
            return process.take_lock(path, wait_s=_EARLIER_START_WAIT_S)

    def _spawn(self, lock: int) -> subprocess.Popen[bytes]:
        settings = _SETTINGS | ({} if self.durable else _NOT_DURABLE)
        settings["unix_socket_directories"] = str(postgres_socket_directory(self.data_dir))
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return process.spawn(
            [postgres_binary("postgres"), "-D", self.cluster, *flags],
            log_path=self.log_path,
            lock=lock,
            identity=self._identity.spec,
            death_signal=signal.SIGINT,
        )

    def _start_again_or_fail(self) -> None:
        """After kill -9, memory of the old server may outlive its processes by a moment."""
        tail = self._log_tail()
        if not any(words in tail.splitlines()[-1] for words in _TRY_AGAIN_WORDS if tail):
            raise ServerFailed(f"Postgres did not start:\n{tail}")
        time.sleep(0.2)
        self.start()

    def _create_cluster(self) -> None:
        for leftover in self.data_dir.glob("postgres.new-*"):
            shutil.rmtree(leftover)
        unfinished = self.data_dir / f"postgres.new-{os.getpid()}"
        unfinished.mkdir(mode=0o700)
        os.chown(unfinished, self._identity.uid, self._identity.gid)
        initdb: list[str | Path] = [postgres_binary("initdb"), "-D", unfinished, *_INITDB]
        self._set_up(initdb if self.durable else [*initdb, "--no-sync"])
        # Single-user mode: no socket, no port, and it ends when its input does.
        single: list[str | Path] = [postgres_binary("postgres"), "--single", "-j", "-D", unfinished]
        if not self.durable:
            single += ["-c", "fsync=off"]
        self._set_up([*single, "template1"], stdin=self._set_up_sql())
        unfinished.rename(self.cluster)

    def _set_up_sql(self) -> str:
        """Statements for single-user mode, which ends each at an empty line.

        The extension goes into template1, so that the databases of tests have it too.
        """
        create = "CREATEDB" if self.may_create_databases else "NOCREATEDB"
        return "\n\n".join(
            [
                "CREATE EXTENSION vector;",
                f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE {create};",
                f"CREATE DATABASE {DATABASE} OWNER {ROLE};",
                "",
            ]
        )

    def _set_up(self, command: list[str | Path], stdin: str = "") -> None:
        done = process.run(command, identity=self._identity.spec, stdin=stdin)
        if done.returncode != 0 or "ERROR:" in done.stdout or "FATAL:" in done.stdout:
            raise ServerFailed(f"The database could not be created:\n{done.stdout[-1500:].strip()}")

    def _remove_stale_pid_files(self, sockets: Path) -> None:
        """We hold the lock, so no server of ours lives: the pids may be anybody's by now."""
        for path in (self.cluster / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
            if not path.exists():
                continue
            with contextlib.suppress(ValueError, IndexError, OSError):
                self._refuse_foreign_server(_pid_in(path))
            path.unlink(missing_ok=True)

    def _refuse_foreign_server(self, pid: int) -> None:
        if os.path.samefile(f"/proc/{pid}/cwd", self.cluster):
            raise ServerFailed(
                f"Another Postgres (pid {pid}), started by hand, uses {self.cluster}."
            )

    def _log_tail(self) -> str:
        return process.log_tail(self.log_path)


def _pid_in(path: Path) -> int:
    return int(path.read_text().split()[0])
