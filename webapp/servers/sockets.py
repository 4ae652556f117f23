"""Where the embedded servers listen. Knows no server and needs no Django."""

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 107  # sockaddr_un.sun_path holds 108 with the final NUL
_LONGEST_NAME = ".s.PGSQL.5432.lock"
# libpq splits at commas, and Redis URLs at more than that.
_PLAIN = re.compile(r"[A-Za-z0-9/._~@+=-]+")


class UnsafeSocketDirectory(Exception):
    """The directory for the sockets belongs to somebody else, or others may enter it."""


def socket_directory(data_dir: Path) -> Path:
    """The directory of the sockets: inside `data_dir`, or a private one below the system's
    temporary directory where that path is too long or has characters that URLs cannot carry.

    Only computes the path, and refuses a directory which others could have put there.
    """
    inside = data_dir / "sockets"
    fits = len(os.fsencode(inside / _LONGEST_NAME)) <= MAX_SOCKET_PATH_BYTES
    if fits and _PLAIN.fullmatch(str(inside)):
        return inside
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    directory = Path(tempfile.gettempdir()) / f"vitrine-{os.geteuid()}-{digest}"
    if os.path.lexists(directory):
        _refuse_if_not_private(directory)
    return directory


def make_socket_directory(data_dir: Path) -> Path:
    directory = socket_directory(data_dir)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_if_not_private(directory)
    return directory


def postgres_socket_directory(data_dir: Path) -> Path:
    return socket_directory(data_dir)


def valkey_socket(data_dir: Path) -> Path:
    return socket_directory(data_dir) / "valkey.sock"


def _refuse_if_not_private(directory: Path) -> None:
    # lstat, so that a link which somebody else placed under this name is not followed.
    status = directory.lstat()
    private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) & 0o077 == 0
    if not private or status.st_uid != os.geteuid():
        raise UnsafeSocketDirectory(
            f"{directory} must be a directory of this user that nobody else may enter;"
            " remove it, or choose a shorter and plainer DATA_DIR."
        )
