"""The secret key of an installation that brings none."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def stored_secret_key(data_dir: Path) -> str:
    """The key in `data_dir`/secret_key (mode 0600), made at the first call.

    Two processes that start at once agree: the key is linked into place whole, and the link that
    comes second fails.
    """
    path = data_dir / "secret_key"
    if not path.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=data_dir)  # mode 0600
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(50))
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, path)
        finally:
            os.unlink(unfinished)
    return path.read_text().strip()
