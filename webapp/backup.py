"""A copy of all that a site keeps, in one file, and a site made of it.

Of the embedded database, which alone may be read past row-level security. What can be had anew is left
out: models, static files, logs, and the queue, for the database knows what is to be done.
"""

import fcntl
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any

from django.utils import timezone

from webapp import schema
from webapp.servers.binaries import postgres_binary
from webapp.servers.postgres import DATABASE, Postgres
from webapp.servers.process import ServerFailed
from webapp.servers.sockets import socket_directory
from webapp.serving.database import FILE_FOLDERS, holds_something

FORMAT = 1
_MANIFEST, _DUMP, _KEY, _END = "manifest.json", "database.dump", "secret_key", "end"
_CLUSTER = "postgres"
_STAGING = "restoring-"
_UNFINISHED = ".vitrine-backup-"
_JUST_MADE_S = 60.0  # and not locked yet, perhaps
_SUPERUSER = "postgres"
_PIECE_BYTES = 2**20
_DAMAGE = (
    *(tarfile.TarError, zlib.error, lzma.LZMAError),
    *(ValueError, KeyError, TypeError, EOFError, RecursionError),
)


class BackupFailed(Exception):
    """The message is for the person at the console."""


def write(path: Path, data_dir: Path) -> int:
    """Write a backup whole or not at all, for this user alone; the database must run. Returns its size.

    The database comes before the files, so that none is missing but those that were deleted meanwhile.
    Raises BackupFailed, OSError.
    """
    _drop_unfinished(path.parent)
    with TemporaryDirectory(dir=path.parent, prefix=_UNFINISHED) as folder, _locked(Path(folder)):
        dump, unfinished = Path(folder) / _DUMP, Path(folder) / "tar"
        source = Postgres(data_dir).conninfo(user=_SUPERUSER)
        _run("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={source}")
        with (
            open(unfinished, "wb", opener=_only_ours) as file,
            tarfile.open(fileobj=file, mode="w", dereference=True) as tar,  # links are files
        ):
            _add_bytes(tar, _MANIFEST, json.dumps(_manifest(), indent=1).encode())
            tar.add(dump, _DUMP)
            dump.unlink()
            for one in _files(data_dir):
                _add_file(tar, one, str(one.relative_to(data_dir)))
            _add_bytes(tar, _END, b"")
        os.replace(unfinished, path)
    return path.stat().st_size


def _drop_unfinished(folder: Path) -> None:
    """What a backup has left that was killed: half of what people wrote, where nobody looks."""
    newest_s = time() - _JUST_MADE_S
    for leftover in folder.glob(f"{_UNFINISHED}*"):
        with suppress(OSError):  # it is locked, or goes by itself
            if leftover.stat().st_mtime < newest_s:
                with _locked(leftover):
                    shutil.rmtree(leftover)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises BlockingIOError where another process works in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def restore(path: Path, data_dir: Path) -> None:
    """Make a site of a backup, where there is none; the caller holds the lock of `data_dir`.

    Raises BackupFailed, OSError.
    """
    names = (_CLUSTER, "valkey", *FILE_FOLDERS)
    if found := [name for name in names if holds_something(data_dir / name)]:
        raise BackupFailed(
            f"{data_dir} holds data already ({', '.join(found)}); a backup is restored into a DATA_DIR"
            " without."
        )
    for leftover in data_dir.glob(f"{_STAGING}*"):  # of a restore that was killed
        shutil.rmtree(leftover)
    with TemporaryDirectory(dir=data_dir, prefix=_STAGING) as folder:
        staging = Path(folder)
        try:
            with tarfile.open(path) as tar:
                _unpack(tar, staging)
        except (OSError, *_DAMAGE) as error:
            if getattr(error, "errno", None) is not None:
                raise  # of the disk: what decompresses has no number
            raise BackupFailed(f"{path} is no backup of Vitrine's, or not a whole one.") from None
        _load(staging)
        # The cluster last: where a move fails before, the next start finds no half of a site.
        for name in (*FILE_FOLDERS, _KEY, _CLUSTER):
            if (staging / name).exists():
                os.replace(staging / name, data_dir / name)


def _manifest() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": version("vitrine"),
        "made_at": timezone.now().isoformat(),
        "migrations": [list(one) for one in schema.own_applied()],
    }


def _unpack(tar: tarfile.TarFile, staging: Path) -> None:
    """Raises BackupFailed, and what tarfile and json raise."""
    members = iter(tar)
    first = next(members, None)
    told = tar.extractfile(first) if first is not None and first.name == _MANIFEST else None
    if told is None:
        raise ValueError("no manifest")
    manifest = json.loads(told.read())
    newer = schema.newer((app, name) for app, name in manifest["migrations"])
    if manifest["format"] > FORMAT or newer:
        raise BackupFailed(
            f"The backup is of a newer version of Vitrine ({manifest['version']}"
            f"{''.join(f', {one}' for one in newer)}); restore it with that."
        )
    last = ""
    for member in members:
        last = member.name
        is_known = last in (_DUMP, _KEY, _END) or last.split("/")[0] in FILE_FOLDERS
        if not (is_known and member.isfile()):
            raise ValueError(last)
        tar.extract(member, staging, filter="data")
    if last != _END:
        raise ValueError("cut short")
    while tar.fileobj and tar.fileobj.read(_PIECE_BYTES):
        pass  # where it is compressed, its sums come last


def _load(staging: Path) -> None:
    """Make a cluster beside the files, with what was dumped."""
    postgres = Postgres(staging)
    try:
        postgres.start()
        postgres.wait_ready()
        target = postgres.conninfo(user=_SUPERUSER, dbname=DATABASE)
        _run(
            "pg_restore",
            "--single-transaction",
            "--exit-on-error",
            f"--dbname={target}",
            str(staging / _DUMP),
        )
    except ServerFailed as error:
        raise BackupFailed(str(error)) from None
    finally:
        postgres.stop()
        shutil.rmtree(socket_directory(staging), ignore_errors=True)


def _run(program: str, *arguments: str) -> None:
    """Raises BackupFailed. Nothing of the environment says where the database is, or how it is read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run(  # noqa: S603
        [postgres_binary(program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BackupFailed(f"{program} failed: {done.stderr.strip()[-1500:]}")


def _files(data_dir: Path) -> list[Path]:
    found = [data_dir / _KEY] if (data_dir / _KEY).exists() else []
    for name in FILE_FOLDERS:
        found += sorted(one for one in (data_dir / name).rglob("*") if one.is_file())
    return found


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Unless it has gone meanwhile."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        tar.addfile(tar.gettarinfo(arcname=name, fileobj=file), file)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _only_ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
