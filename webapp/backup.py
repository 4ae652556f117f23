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
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import IO, Any, NamedTuple

from django.utils import timezone

from webapp import schema
from webapp.secret_key import keys_in
from webapp.servers.binaries import postgres_binary
from webapp.servers.postgres import DATABASE, Postgres
from webapp.servers.process import ServerFailed
from webapp.servers.sockets import socket_directory
from webapp.serving.database import FILE_FOLDERS, holds_something

FORMAT = 2
"""From 2 on the files are listed, behind them, for only who has read them knows their sums."""
_MANIFEST, _DUMP, _KEY, _LIST, _END = (
    *("manifest.json", "database.dump", "secret_key"),
    *("files.jsonl", "end"),
)
_CLUSTER = "postgres"
_STAGING = "restoring-"
_UNFINISHED = ".vitrine-backup-"
_JUST_MADE_S = 60.0  # and not locked yet, perhaps
_SUPERUSER = "postgres"
_PIECE_BYTES = 2**20
_MAX_MANIFEST_BYTES = 2**20
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
        keys = _stored_keys(data_dir)
        _run("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={source}")
        with (
            open(unfinished, "wb", opener=_only_ours) as file,
            open(Path(folder) / _LIST, "w+b") as listed,
            tarfile.open(fileobj=file, mode="w", dereference=True) as tar,  # links are files
        ):
            into = _Into(tar, listed)
            into.add_bytes(_MANIFEST, json.dumps(_manifest(), indent=1).encode())
            into.add_file(_DUMP, dump)
            dump.unlink()
            # Those of before the dump, too: it may be sealed with one that was forgotten meanwhile.
            if keys := list(dict.fromkeys([*_stored_keys(data_dir), *keys])):
                into.add_bytes(_KEY, "\n".join(keys).encode(errors="surrogateescape"))
            for one in _files(data_dir):
                into.add_file(str(one.relative_to(data_dir)), one)
            into.end()
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


def restore(path: Path, data_dir: Path) -> bool:
    """Make a site of a backup, where there is none; the caller holds the lock of `data_dir`. Returns
    whether its files could be compared with a list of them.

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
        was_compared = _read(path, staging)
        _load(staging)
        # The cluster last: where a move fails before, the next start finds no half of a site.
        for name in (*FILE_FOLDERS, _KEY, _CLUSTER):
            if (staging / name).exists():
                os.replace(staging / name, data_dir / name)
    return was_compared


def verify(path: Path) -> bool:
    """As `restore` would, and write nothing. Returns whether its files could be compared with a list.

    Raises BackupFailed, OSError.
    """
    return _read(path, None)


def _read(path: Path, staging: Path | None) -> bool:
    """Raises BackupFailed, OSError."""
    try:
        with tarfile.open(path) as tar:
            return _unpack(tar, staging)
    except (OSError, *_DAMAGE) as error:
        if getattr(error, "errno", None) is not None:
            raise  # of the disk: what decompresses has no number
        raise BackupFailed(f"{path} is no backup of Vitrine's, or not a whole one.") from None


def _manifest() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": version("vitrine"),
        "made_at": timezone.now().isoformat(),
        "migrations": [list(one) for one in schema.own_applied()],
    }


def _unpack(tar: tarfile.TarFile, staging: Path | None) -> bool:
    """Into `staging`, if any; whether there was a list. Raises BackupFailed, and what tarfile and json
    raise."""
    members = iter(tar)
    first = next(members, None)
    told = tar.extractfile(first) if first is not None and first.name == _MANIFEST else None
    if first is None or told is None or first.size > _MAX_MANIFEST_BYTES:
        raise ValueError("no manifest")
    content = told.read()
    manifest = json.loads(content)
    newer = schema.newer((app, name) for app, name in manifest["migrations"])
    if manifest["format"] > FORMAT or newer:
        raise BackupFailed(
            f"The backup is of a newer version of Vitrine ({manifest['version']}"
            f"{''.join(f', {one}' for one in newer)}); restore it with that."
        )
    found = {_MANIFEST: _Sum(len(content), sha256(content).digest())}
    last, is_listed = "", False
    for member in members:
        last = member.name
        is_known = last in (_DUMP, _KEY, _LIST, _END) or last.split("/")[0] in FILE_FOLDERS
        if not (is_known and member.isfile()):
            raise ValueError(last)
        file = tar.extractfile(member)
        if file is None:
            raise ValueError(last)
        if last == _LIST:
            _compare(found, file)
            is_listed = True
        elif is_listed and last != _END:
            raise BackupFailed(f"{last} is in the backup and not in its list of files.")
        elif last != _END:
            if last in found:
                raise BackupFailed(f"{last} is in the backup twice.")
            found[last] = _extract(tar, member, file, staging)
    if last != _END or (manifest["format"] > 1 and not is_listed):
        raise ValueError("cut short")
    while tar.fileobj and tar.fileobj.read(_PIECE_BYTES):
        pass  # where it is compressed, its sums come last
    return is_listed


def _extract(
    tar: tarfile.TarFile, member: tarfile.TarInfo, file: IO[bytes], staging: Path | None
) -> "_Sum":
    """Its sum, of what has come to the disk."""
    if staging is None:
        tarfile.data_filter(member, "/restored")  # it refuses what would leave the folder
        return _sum_of(file)
    tar.extract(member, staging, filter="data")
    with (staging / member.name).open("rb") as written:
        return _sum_of(written)


def _compare(found: dict[str, "_Sum"], listed: IO[bytes]) -> None:
    """Raises BackupFailed for a file that the list has otherwise, and for one that it lacks."""
    while line := listed.readline(_PIECE_BYTES):
        one = json.loads(line)
        name = one["name"]
        there = found.pop(name, None)
        if there is None:
            raise BackupFailed(f"{name} is missing in the backup.")
        if there != _Sum(one["size_bytes"], bytes.fromhex(one["sha256"])):
            raise BackupFailed(f"{name} was altered in the backup: its sha256 is another one.")
    if found:
        raise BackupFailed(f"{min(found)} is in the backup and not in its list of files.")


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


def _stored_keys(data_dir: Path) -> list[str]:
    path = data_dir / _KEY
    return keys_in(path.read_text(errors="surrogateescape")) if path.exists() else []


def _files(data_dir: Path) -> list[Path]:
    return [
        one
        for name in FILE_FOLDERS
        for one in sorted((data_dir / name).rglob("*"))
        if one.is_file()
    ]


class _Sum(NamedTuple):
    size_bytes: int
    digest: bytes


def _sum_of(file: IO[bytes]) -> _Sum:
    digest, size_bytes = sha256(), 0
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
        size_bytes += len(piece)
    return _Sum(size_bytes, digest.digest())


class _Summing:
    """A file, of what tarfile reads of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = sha256()
        self._size_bytes = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._digest.update(piece)
        self._size_bytes += len(piece)
        return piece

    @property
    def sum(self) -> _Sum:
        return _Sum(self._size_bytes, self._digest.digest())


class _Into:
    """A backup that is being written, and the list of its files, a line of JSON each."""

    def __init__(self, tar: tarfile.TarFile, listed: IO[bytes]) -> None:
        self._tar = tar
        self._listed = listed

    def add_file(self, name: str, path: Path) -> None:
        """Unless it has gone meanwhile."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return
        with file:
            self._add(self._tar.gettarinfo(arcname=name, fileobj=file), file)

    def add_bytes(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o600
        self._add(member, io.BytesIO(content))

    def end(self) -> None:
        member = tarfile.TarInfo(_LIST)
        member.size = self._listed.tell()
        self._listed.seek(0)
        self._tar.addfile(member, self._listed)
        self._tar.addfile(tarfile.TarInfo(_END))

    def _add(self, member: tarfile.TarInfo, file: IO[bytes]) -> None:
        """As many bytes as it had when it was looked at."""
        summing = _Summing(file)
        self._tar.addfile(member, summing)
        found = summing.sum
        line = {"name": member.name, "size_bytes": found.size_bytes, "sha256": found.digest.hex()}
        self._listed.write(json.dumps(line).encode() + b"\n")


def _only_ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
