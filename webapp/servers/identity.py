"""As whom Postgres runs, since it refuses to run as root."""

import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webapp.servers.binaries import postgres_binary
from webapp.servers.process import ServerFailed, can_become

_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Identity:
    """`spec` is the launcher's argument; the server's files must belong to `uid` and `gid`."""

    spec: str
    uid: int
    gid: int


def unprivileged_identity(data_dir: Path, cluster: Path) -> Identity:
    """Somebody who is not root and can reach the program and the data.

    No permission above the cluster is ever changed to make it reachable.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        candidates = _candidates_for_root(cluster if cluster.exists() else data_dir)
    elif _has_name(uid):
        return Identity("self", uid, gid)
    else:
        candidates = iter([Identity("namespace", uid, gid)])  # initdb asks for the user's name
    for identity in candidates:
        if can_become(identity.spec, [postgres_binary("postgres"), data_dir]):
            return identity
    raise ServerFailed(
        "Postgres needs a user that has a name and is not root, and this machine allows neither"
        " user namespaces nor another account. Start Vitrine as an ordinary user, or set"
        " DATABASE_URL."
    )


def own_tree(path: Path, identity: Identity) -> None:
    """Hand our own directory to `identity`. Does nothing when it has it; follows no links."""
    if not path.exists() or path.stat().st_uid == identity.uid:
        return
    for directory, names, files in os.walk(path):
        for name in [*names, *files]:
            os.chown(Path(directory) / name, identity.uid, identity.gid, follow_symlinks=False)
    # The top comes last, so that an interrupted walk is repeated.
    os.chown(path, identity.uid, identity.gid)


def _candidates_for_root(data: Path) -> Iterator[Identity]:
    """Best first: the owner of the data, then root in a namespace, then a stock account."""
    owner = data.stat()
    if owner.st_uid != 0:
        yield _account(owner.st_uid, owner.st_gid)
    yield Identity("namespace", 0, 0)
    for name in _ACCOUNTS:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        yield _account(account.pw_uid, account.pw_gid)


def _has_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def _account(uid: int, gid: int) -> Identity:
    return Identity(f"account:{uid}:{gid}", uid, gid)
