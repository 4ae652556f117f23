"""Database commands of manage.py work while nothing is served: the servers start for them.

Commands that run side by side share what the first has started, which stays until the last has ended.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_NEED_THE_DATABASE = {
    "backup",
    "changepassword",
    "clearsessions",
    "createapikey",
    "createsuperuser",
    "dbshell",
    "dumpdata",
    "evalretrieval",
    "exportlabels",
    "flush",
    "handover",
    "ingest",
    "invite",
    "ldap_sync",
    "loaddata",
    "migrate",
    "reseal",
    "shell",
    "showmigrations",
}
# A backup that new code makes before an upgrade is the way back from it.
_LEAVES_AS_IT_IS = {"backup"}
# An operator at the command line means every row, and half a dump is worse than none.
_SEE_EVERY_ROW = {"dumpdata", "evalretrieval", "flush", "loaddata", "migrate", "shell"}
_COMMAND = "manage.py "
_READY_S = 120.0
_POLL_S = 0.05


@contextmanager
def ready_for(argv: Sequence[str]) -> Iterator[None]:
    """What `manage.py COMMAND` needs around it: the database, and the right to see rows."""
    command = argv[1] if len(argv) > 1 else ""
    if command not in _NEED_THE_DATABASE or "--help" in argv:
        with _absence_explained():
            yield
        return
    from webapp.tenancy import as_nobody, as_system

    with _servers_for(command), as_system() if command in _SEE_EVERY_ROW else as_nobody():
        if command not in _LEAVES_AS_IT_IS:
            _refuse_newer()
        yield


def _refuse_newer() -> None:
    """Where the database does not answer, the command says so itself."""
    import django
    from django.db import OperationalError

    django.setup()
    from webapp.schema import problem

    with suppress(OperationalError):
        if newer := problem():
            sys.exit(newer)


@contextmanager
def _absence_explained() -> Iterator[None]:
    from django.conf import settings
    from django.db import OperationalError

    from webapp.serving.lock import try_lock

    try:
        yield
    except OperationalError:
        if _is_elsewhere() or isinstance(try_lock(settings.DATA_DIR, _COMMAND), str):
            raise
        sys.exit("The database is not running. Start Vitrine first (make run).")


@contextmanager
def _servers_for(command: str) -> Iterator[None]:
    """The embedded servers, unless somebody runs them or DATABASE_URL names another."""
    import django
    from django.conf import settings

    from webapp.serving.lock import others_take_part, taking_part, wait_for_others

    if _is_elsewhere():
        yield
        return
    with taking_part(settings.DATA_DIR) as part:
        lock = _lock_or_share(f"{_COMMAND}{command}")
        django.setup()
        if isinstance(lock, str):
            if lock.startswith(_COMMAND) and command not in _LEAVES_AS_IT_IS:
                from webapp.schema import migrate_if_needed

                migrate_if_needed()  # or wait until it has
            yield
            return
        try:
            with _running_servers(migrates=command not in _LEAVES_AS_IT_IS):
                try:
                    yield
                finally:
                    if others_take_part(part):
                        sys.stderr.write(
                            "Other commands still use the database; waiting for them.\n"
                        )
                    wait_for_others(part)
        finally:
            os.close(lock)


def _is_elsewhere() -> bool:
    return bool(os.environ.get("DATABASE_URL"))


def _lock_or_share(address: str) -> int | str:
    """The lock of DATA_DIR, whose holder starts the servers; or who has it, once the servers answer.

    Of a serve they need not: it starts them anew where they have died.
    """
    import psycopg
    from django.conf import settings

    from webapp.servers.postgres import Postgres
    from webapp.serving.lock import try_lock

    deadline = time.monotonic() + _READY_S
    while isinstance(found := try_lock(settings.DATA_DIR, address), str):
        if not found.startswith(_COMMAND):
            return found
        try:
            psycopg.connect(Postgres(settings.DATA_DIR).conninfo(), connect_timeout=5).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                sys.exit(f"{found} runs on this DATA_DIR, and its database does not answer.")
            time.sleep(_POLL_S)
        else:
            return found
    return found


@contextmanager
def _running_servers(*, migrates: bool) -> Iterator[None]:
    from django.conf import settings
    from django.db import connections

    from webapp.schema import migrate_if_needed
    from webapp.servers.postgres import Postgres
    from webapp.servers.valkey import Valkey
    from webapp.serving.database import other_site

    postgres = Postgres(settings.DATA_DIR)
    if not postgres.cluster.exists() and (problem := other_site(settings.DATA_DIR)):
        sys.exit(problem)
    servers: list[Valkey | Postgres] = [Valkey(settings.DATA_DIR), postgres]
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait_ready()
        if migrates:
            migrate_if_needed()
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]
        for server in reversed(servers):
            server.stop()
