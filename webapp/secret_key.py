"""The secret key of an installation that brings none, and those that it had before."""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

NAME = "secret_key"
"""Of the file in DATA_DIR: a key a line, the present one first. One file, so that it changes at once."""


def stored_secret_keys(data_dir: Path) -> list[str]:
    """Those in `data_dir`/secret_key (mode 0600), of which one is made at the first call.

    Two processes that start at once agree: the key is linked into place whole, and the link that
    comes second fails. Raises ImproperlyConfigured where it can be neither made nor read.
    """
    path = data_dir / NAME
    try:
        if not path.exists():
            _make(path)
        keys = keys_in(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ImproperlyConfigured(f"{path} cannot be read or made ({reason}).") from None
    if not keys:
        raise ImproperlyConfigured(f"{path} is empty; put back what it held.")
    return keys


def keys_in(content: str) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, content.splitlines()))))


def make_new_key(data_dir: Path) -> None:
    """What was the present one goes on opening what it has sealed. Raises ImproperlyConfigured,
    OSError."""
    with _changing(data_dir):
        _replace(data_dir / NAME, [_new(), *stored_secret_keys(data_dir)])


def forget_keys(data_dir: Path, old: Collection[str]) -> int:
    """How many of these were stored. The present one stays, whatever it is by now. Raises
    ImproperlyConfigured, OSError."""
    with _changing(data_dir):
        present, *others = stored_secret_keys(data_dir)
        left = [key for key in others if key not in old]
        if len(left) < len(others):
            _replace(data_dir / NAME, [present, *left])
        return len(others) - len(left)


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(_new())
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        os.unlink(unfinished)


def _new() -> str:
    return secrets.token_urlsafe(50)


@contextmanager
def _changing(data_dir: Path) -> Iterator[None]:
    """One at a time: of two new keys that know nothing of each other, one would be lost."""
    descriptor = os.open(data_dir, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, keys: Sequence[str]) -> None:
    """On the disk before anything is sealed with it. What a kill leaves, the next one overwrites."""
    unfinished = path.with_name(f"{NAME}.new")
    with open(unfinished, "w", opener=_only_ours) as file:
        file.writelines(f"{key}\n" for key in keys)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _only_ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
