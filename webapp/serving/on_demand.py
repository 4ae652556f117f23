"""Database commands of manage.py work while nothing is served: the servers start for them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_NEED_THE_DATABASE = {
    "changepassword",
    "clearsessions",
    "createapikey",
    "createsuperuser",
    "dbshell",
    "dumpdata",
    "evalretrieval",
    "flush",
    "ingest",
    "loaddata",
    "migrate",
    "shell",
    "showmigrations",
}


# An operator at the command line means every row, and half a dump is worse than none.
_SEE_EVERY_ROW = {"dumpdata", "evalretrieval", "flush", "loaddata", "migrate", "shell"}


@contextmanager
def ready_for(argv: Sequence[str]) -> Iterator[None]:
    """What `manage.py COMMAND` needs around it: the database, and the right to see rows."""
    command = argv[1] if len(argv) > 1 else ""
    if command not in _NEED_THE_DATABASE or "--help" in argv:
        yield
        return
    from webapp.tenancy import as_nobody, as_system

    with _servers_for(command), as_system() if command in _SEE_EVERY_ROW else as_nobody():
        yield


@contextmanager
def _servers_for(command: str) -> Iterator[None]:
    """The embedded servers, unless `serve` runs them or DATABASE_URL names another."""
    import django
    from django.conf import settings

    from webapp.serving.lock import hold_lock, is_served

    if os.environ.get("DATABASE_URL") or is_served(settings.DATA_DIR):
        yield
        return
    django.setup()
    lock = hold_lock(settings.DATA_DIR, f"manage.py {command}")
    try:
        with _running_servers():
            yield
    finally:
        os.close(lock)


@contextmanager
def _running_servers() -> Iterator[None]:
    from django.conf import settings
    from django.db import connections

    from webapp.schema import migrate_if_needed
    from webapp.servers.postgres import Postgres
    from webapp.servers.valkey import Valkey

    servers: list[Valkey | Postgres] = [Valkey(settings.DATA_DIR), Postgres(settings.DATA_DIR)]
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait_ready()
        migrate_if_needed()
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]
        for server in reversed(servers):
            server.stop()
