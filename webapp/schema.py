"""Bringing the database's schema up to date, quickly when there is nothing to do."""

from collections.abc import Iterable
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from webapp.tenancy import as_system

# Any number that no other program locks: two machines may start on one database.
_LOCK_KEY = 0x766974
_OWN = ("webapp", "chat", "retrieval", "moderation")
_NUM_DIGITS = 4  # of a migration's number


def migrate_if_needed() -> int:
    """Apply what is missing, also when several processes do this at once. Returns how many."""
    if not _missing():
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK_KEY])
        try:
            missing = _missing()
            if missing:
                with as_system():  # a data migration has to see every row
                    call_command("migrate", interactive=False, verbosity=0)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK_KEY])
    return len(missing)


def problem() -> str | None:
    """Why this code cannot work on the database, as a sentence: a newer version has changed it."""
    found = newer(own_applied())
    if not found:
        return None
    return (
        f"The database was migrated by a newer version of Vitrine ({', '.join(found)}). Start that"
        " version, or restore a backup of this one's."
    )


def own_applied() -> list[tuple[str, str]]:
    """Our own migrations that the database has, app and name of each."""
    return sorted(
        one for one in MigrationRecorder(connection).applied_migrations() if one[0] in _OWN
    )


def newer(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Those that this code does not have, in words.

    By their numbers, which only grow: one that was once renamed is no newer one.
    """
    ours = _on_disk()
    newest = {app: max(name for of, name in ours if of == app) for app in _OWN}
    return [
        f"{app} {name}"
        for app, name in applied
        if name[:_NUM_DIGITS] > newest.get(app, "")[:_NUM_DIGITS]
    ]


def _missing() -> set[tuple[str, str]]:
    """Migrations on disk that are not recorded. Reads names only: imports none of them."""
    return _on_disk() - set(MigrationRecorder(connection).applied_migrations())


def _on_disk() -> set[tuple[str, str]]:
    return {
        (config.label, file.stem)
        for config in apps.get_app_configs()
        for file in (Path(config.path) / "migrations").glob("[0-9]*.py")
    }
