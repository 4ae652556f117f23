"""As whom and where the embedded servers run, and that Valkey forgets nothing."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from tests.sites import ROOT
from tests.webapp.conftest import query
from webapp.servers import identity, launcher, process
from webapp.servers.identity import Identity
from webapp.servers.postgres import Postgres
from webapp.servers.sockets import (
    MAX_SOCKET_PATH_BYTES,
    UnsafeSocketDirectory,
    make_socket_directory,
    socket_directory,
    valkey_socket,
)
from webapp.servers.valkey import Valkey

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="what only root can do")


@pytest.fixture
def below_a_closed_folder(data_dir: Path) -> Iterator[Path]:
    """DATA_DIR as it is below /root: nobody but its owner may enter a folder above."""
    with tempfile.TemporaryDirectory(prefix="v-") as folder:
        closed = Path(folder) / "closed"
        closed.mkdir(mode=0o700)
        shutil.move(data_dir, closed / "data")
        yield closed / "data"
        shutil.move(closed / "data", data_dir)


def modes_above(path: Path) -> list[tuple[str, int, int]]:
    return [(str(p), p.stat().st_mode, p.stat().st_uid) for p in path.parents]


@root_only
def test_an_account_may_run_programs_below_a_closed_folder(tmp_path: Path) -> None:
    """Postgres asks access(2) whether it may run its own programs before it does."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "program"
    program.write_text("#!/bin/sh\nid -u\n")
    program.chmod(0o755)
    account = f"account:{launcher.NOBODY}:{launcher.NOBODY}"
    done = process.run(["/bin/sh", "-c", f"test -x {program} && {program}"], identity=account)
    assert (done.returncode, done.stdout.strip()) == (0, str(launcher.NOBODY))
    assert identity.can_become(account, [program, closed])
    program.chmod(0o600)
    assert not identity.can_become(account, [program])


@root_only
@pytest.mark.parametrize("namespaces_allowed", [True, False])
def test_as_root_no_permission_above_the_data_is_changed(
    below_a_closed_folder: Path, namespaces_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = identity.can_become
    if namespaces_allowed:  # some machines do not: in a chroot or a container, mostly
        namespaces_allowed = stock("namespace", [])
    else:
        monkeypatch.setattr(
            identity, "can_become", lambda spec, paths: spec != "namespace" and stock(spec, paths)
        )
    before = modes_above(below_a_closed_folder)
    for _ in range(2):
        postgres = Postgres(below_a_closed_folder)
        postgres.start()
        postgres.wait_ready()
        assert postgres.process is not None
        uid = psutil.Process(postgres.process.pid).uids().effective
        found = query(postgres, "SELECT 1")
        postgres.stop()
        assert (uid == 0) is namespaces_allowed
        assert found == [(1,)]
    assert modes_above(below_a_closed_folder) == before
    owner = (below_a_closed_folder / "postgres").stat().st_uid
    assert (owner == 0) is namespaces_allowed


@root_only
def test_data_of_an_ordinary_user_stays_theirs_when_root_starts_it(data_dir: Path) -> None:
    nobody = Identity("", launcher.NOBODY, launcher.NOBODY)
    identity.own_tree(data_dir / "postgres", nobody)
    postgres = Postgres(data_dir)
    postgres.start()
    postgres.wait_ready()
    postgres.stop()
    owners = {path.stat().st_uid for path in (data_dir / "postgres").rglob("*")}
    assert owners == {launcher.NOBODY}


def test_it_works_as_somebody_who_is_not_root(data_dir: Path) -> None:
    """In a user namespace this process is `nobody`, with the rights of whoever started it."""
    if not identity.can_become("namespace", []):
        pytest.skip("user namespaces are not allowed here")
    code = f"""
import os, sys; sys.path.insert(0, {str(ROOT)!r})
assert os.geteuid() == {launcher.NOBODY}
from pathlib import Path
from webapp.servers.postgres import Postgres
postgres = Postgres(Path({str(data_dir)!r}))
postgres.start(); postgres.wait_ready(); postgres.stop()
"""
    arguments = [str(os.getpid()), "namespace", "9", sys.executable, "-c", code]
    done = subprocess.run(
        [sys.executable, launcher.__file__, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["d" * 90, "my data, 100%", "größe?#"])
def test_a_long_or_awkward_data_dir_gets_a_private_socket_directory(
    data_dir: Path, name: str
) -> None:
    awkward = data_dir / name
    awkward.mkdir()
    shutil.move(data_dir / "postgres", awkward / "postgres")
    directory = make_socket_directory(awkward)
    try:
        assert len(os.fsencode(directory / ".s.PGSQL.5432.lock")) <= MAX_SOCKET_PATH_BYTES
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        for server in (Postgres(awkward), Valkey(awkward)):
            server.start()
            server.wait_ready()
            server.stop()
        assert socket_directory(awkward) == directory != socket_directory(data_dir / ("e" * 90))
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("what", ["link", "open", "file"])
def test_a_socket_directory_that_others_could_have_made_is_refused(
    tmp_path: Path, what: str
) -> None:
    long = tmp_path / ("d" * 90)
    directory = socket_directory(long)
    if what == "link":
        directory.symlink_to(tmp_path)
    elif what == "open":
        directory.mkdir()
        directory.chmod(0o755)
    else:
        directory.touch(mode=0o600)
    try:
        with pytest.raises(UnsafeSocketDirectory):
            socket_directory(long)
    finally:
        directory.rmdir() if what == "open" else directory.unlink()


def test_valkey_keeps_its_queue_through_kill_9() -> None:
    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder:
        started = []
        for n in range(3):
            valkey = Valkey(Path(folder))
            started.append(valkey)
            valkey.start()  # at once, while the dead one is not yet reaped
            valkey.wait_ready()
            assert valkey.process is not None
            assert not psutil.Process(valkey.process.pid).net_connections("inet")
            with redis.Redis(unix_socket_path=str(valkey_socket(Path(folder)))) as client:
                assert client.llen("queue") == n
                client.rpush("queue", n)
            if n < 2:
                valkey.process.send_signal(signal.SIGKILL)
        for valkey in started:
            valkey.stop()
