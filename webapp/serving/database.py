"""Why the database of DATABASE_URL cannot be Vitrine's, told before anything is written into it; and
why none is made in DATA_DIR."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

FILE_FOLDERS = ("documents", "files", "imports")
"""Of DATA_DIR: what the database names, and what no other database knows."""
OLDEST_SERVER = 15  # from then on NULLS NOT DISTINCT is known, which constraints of ours say
OLDEST_VECTOR = (0, 8)  # from then on a search goes on where rows are filtered out
_NUM_LOOKS = 5
_OWN_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
_IS_INSTALLED = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"


def other_site(data_dir: Path) -> str | None:
    """Where files lie and no database does, it is elsewhere: a new one would be a site without them."""
    found = [name for name in FILE_FOLDERS if holds_something(data_dir / name)]
    if not found:
        return None
    return (
        f"{data_dir} holds files of a site ({', '.join(found)}) and not its database. Set DATABASE_URL"
        " if that is elsewhere; restore a backup into an empty DATA_DIR; or, for a new site, take"
        " another DATA_DIR."
    )


def holds_something(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def problem_of(parameters: dict[str, Any]) -> str | None:
    """As a sentence. Raises psycopg.OperationalError where it cannot be reached."""
    parameters = parameters | {"connect_timeout": 5, "autocommit": True}
    with psycopg.connect(**parameters) as one, psycopg.connect(**parameters) as other:
        return server_problem(one) or shared_problem([one, other]) or vector_problem(one)


def server_problem(connection: psycopg.Connection[Any]) -> str | None:
    """An older one would take the schema, without those constraints, and fail much later."""
    version = connection.info.server_version // 10_000
    if version >= OLDEST_SERVER:
        return None
    return f"DATABASE_URL names a Postgres {version}; {OLDEST_SERVER} or newer is needed."


def shared_problem(connections: Sequence[psycopg.Connection[Any]]) -> str | None:
    """Whose rows may be seen is said once a session: a pooler that gives sessions away between
    transactions would mix people up. It shows by two connections that meet in one server process."""
    pids: list[set[int]] = [set() for _ in connections]
    for _ in range(_NUM_LOOKS):
        for number, one in enumerate(connections):
            for _ in range(number + 1):  # no pooler that takes turns is in step with that
                pids[number].add(_value(one, "SELECT pg_backend_pid()"))
    if len(set.union(*pids)) == len(connections) == sum(map(len, pids)):
        return None
    return (
        "DATABASE_URL leads through a pooler that shares sessions, by which people would see rows of"
        " others. Name Postgres itself, or pool by session."
    )


def vector_problem(connection: psycopg.Connection[Any]) -> str | None:
    """Makes the extension where it is missing and the role may."""
    if _value(connection, _OWN_VERSION) is None:
        if _value(connection, _IS_INSTALLED) is None:
            return (
                f"The server of DATABASE_URL has no pgvector; install {_oldest()} or newer there."
            )
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.InsufficientPrivilege:
            return (
                "The database of DATABASE_URL lacks the extension vector, which its role may not make."
                " Let a superuser say in it: CREATE EXTENSION vector;"
            )
    version = str(_value(connection, _OWN_VERSION))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VECTOR:
        return (
            f"The database of DATABASE_URL has pgvector {version}; {_oldest()} or newer is needed."
            " Install it on the server, then let a superuser say: ALTER EXTENSION vector UPDATE;"
        )
    return None


def _oldest() -> str:
    return ".".join(map(str, OLDEST_VECTOR))


def _value(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return row[0] if row else None
