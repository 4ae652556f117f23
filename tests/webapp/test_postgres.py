"""The embedded Postgres survives what machines do to it."""

import contextlib
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.sites import ROOT, wait_until
from tests.webapp.conftest import query
from webapp.servers.postgres import Postgres
from webapp.servers.process import ServerFailed, StillRunning, take_lock


def kill_all(postgres: Postgres) -> None:
    """kill -9 of the postmaster and all its children at once, without reaping."""
    assert postgres.process is not None
    parent = psutil.Process(postgres.process.pid)
    for process in [*parent.children(recursive=True), parent]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def test_the_app_connects_as_a_role_without_powers_to_a_complete_database(
    start: Callable[[], Postgres],
) -> None:
    postgres = start()
    roles = "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles"
    assert query(postgres, f"{roles} WHERE rolname = current_user") == [(False,) * 4]
    assert query(postgres, "SELECT '[1,2]'::vector <-> '[1,3]'") == [(1.0,)]
    assert query(postgres, "SHOW server_encoding") == [("UTF8",)]
    assert query(postgres, "SELECT upper('straße') COLLATE \"default\"") == [("STRASSE",)]
    assert query(postgres, "SHOW fsync") == [("on",)]


def test_it_listens_on_a_private_socket_only(start: Callable[[], Postgres], data_dir: Path) -> None:
    postgres = start()
    assert postgres.process is not None
    assert not psutil.Process(postgres.process.pid).net_connections("inet")
    sockets = data_dir / "sockets"
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE((sockets / ".s.PGSQL.5432").stat().st_mode) == 0o700


def test_what_was_committed_survives_kill_9_of_everything(start: Callable[[], Postgres]) -> None:
    postgres = start()
    query(postgres, "CREATE TABLE kept (n int)")
    for n in range(3):
        query(postgres, f"INSERT INTO kept VALUES ({n})")
        kill_all(postgres)
        postgres = start()  # at once, while the dead are not yet reaped
    assert query(postgres, "SELECT n FROM kept ORDER BY n") == [(0,), (1,), (2,)]


def test_a_pid_file_whose_pid_is_now_somebody_elses_does_not_matter(
    start: Callable[[], Postgres], data_dir: Path
) -> None:
    postgres = start()
    kill_all(postgres)
    assert postgres.process is not None
    postgres.process.wait()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        for path in [data_dir / "postgres/postmaster.pid", *(data_dir / "sockets").glob(".s*lock")]:
            lines = path.read_text().splitlines()
            path.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        assert query(start(), "SELECT 1") == [(1,)]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "nonsense\n", "999999999\n/tmp\n"])
def test_a_broken_pid_file_does_not_matter(
    start: Callable[[], Postgres], data_dir: Path, content: str
) -> None:
    (data_dir / "postgres/postmaster.pid").write_text(content)
    assert query(start(), "SELECT 1") == [(1,)]


def test_a_half_made_cluster_is_thrown_away(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "postgres")
    half = data_dir / "postgres.new-123" / "base"
    half.mkdir(parents=True)
    (half.parent / "PG_VERSION").write_text("18")
    postgres = Postgres(data_dir, durable=False)
    postgres.start()
    postgres.wait_ready()
    postgres.stop()
    assert not list(data_dir.glob("postgres.new-*"))


def test_an_initdb_that_is_killed_in_the_middle_leaves_nothing_that_is_used(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "postgres")
    code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from webapp.servers.postgres import Postgres
Postgres(Path({str(data_dir)!r})).start()
"""
    making = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: list(data_dir.glob("postgres.new-*/base")), what="initdb")
    for process in [*psutil.Process(making.pid).children(recursive=True), making]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    making.wait()
    assert not (data_dir / "postgres").exists()
    postgres = Postgres(data_dir, durable=False)
    postgres.start()
    postgres.wait_ready()
    postgres.stop()


def test_a_second_server_on_the_same_data_is_refused(
    start: Callable[[], Postgres], data_dir: Path
) -> None:
    first = start()
    with pytest.raises(StillRunning):
        take_lock(data_dir / "postgres.lock", wait_s=0.1)
    assert query(first, "SELECT 1") == [(1,)]


def test_a_server_that_cannot_start_says_why(data_dir: Path) -> None:
    (data_dir / "postgres" / "postgresql.conf").write_text("nonsense = yes\n")
    postgres = Postgres(data_dir)
    postgres.start()
    with pytest.raises(ServerFailed, match="nonsense"):
        postgres.wait_ready()


def test_a_server_ends_when_the_process_that_started_it_is_killed(data_dir: Path) -> None:
    code = f"""
import sys, time; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from webapp.servers.postgres import Postgres
from webapp.servers.valkey import Valkey
for server in (Postgres(Path({str(data_dir)!r})), Valkey(Path({str(data_dir)!r}))):
    server.start()
    server.wait_ready()
print("up", flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    servers = psutil.Process(parent.pid).children(recursive=True)
    assert len(servers) > 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not any(server.is_running() for server in servers), what="their end")


def test_the_log_holds_no_statement_and_no_row(
    start: Callable[[], Postgres], data_dir: Path
) -> None:
    postgres = start()
    query(postgres, "CREATE TABLE notes (text text CHECK (text <> 'private'))")
    with pytest.raises(psycopg.errors.CheckViolation):
        query(postgres, "INSERT INTO notes VALUES ('private')")
    log = (data_dir / "logs/postgres.log").read_text()
    assert "violates check constraint" in log
    assert "'private'" not in log
    assert "(private)" not in log
