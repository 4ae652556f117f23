"""Doing what no user may, for one who has been asked for their rights."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def system_rights() -> Iterator[None]:
    """A transaction in the system's scope, which sees and changes everybody's rows.

    For passages and their counts alone, which belong to the index and to nobody. The setting ends with
    the transaction; a savepoint that is rolled back takes it along, and then less is allowed than meant.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('vitrine.scope', true)")
            before = cursor.fetchone()[0] or ""
            _set(cursor, "system")
        yield
        with connection.cursor() as cursor:
            _set(cursor, before)


def _set(cursor: object, scope: str) -> None:
    cursor.execute("SELECT set_config('vitrine.scope', %s, true)", [scope])  # type: ignore[attr-defined]
