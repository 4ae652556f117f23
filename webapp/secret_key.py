"""The secret key of an installation that brings none."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def stored_secret_key(data_dir: Path) -> str:
    """The key in `data_dir`/secret_key (mode 0600), made at the first call.

    Two processes that start at once agree: the key is linked into place whole, and the link that
    comes second fails. Raises ImproperlyConfigured where it can be neither made nor read.
    """
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            _make(path)
        key = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be read or made ({error.strerror}).") from None
    if not key:
        raise ImproperlyConfigured(f"{path} is empty; put back what it held.")
    return key


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        os.unlink(unfinished)
