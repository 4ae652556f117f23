"""A write that is tried again until it is known to be done, and is done once.

Where the connection breaks at the COMMIT nobody hears whether it came through; Postgres knows.
"""

from collections.abc import Callable
from threading import Lock

from django.db import OperationalError, connection, transaction


class Once:
    """Of one write; each try is a call, from any thread. Synchronous."""

    def __init__(self) -> None:
        self._trying = Lock()
        self._transaction: str | None = None

    def __call__(self, write: Callable[[], None]) -> None:
        """In a transaction, unless an earlier try has come through. Raises OperationalError where that
        one is still under way."""
        with self._trying:
            if self._transaction is not None and _is_committed(self._transaction):
                return
            self._transaction = None
            with transaction.atomic():
                (began,) = _row("SELECT pg_current_xact_id()::text")
                write()
                self._transaction = began


def _is_committed(transaction_id: str) -> bool:
    (status,) = _row("SELECT pg_xact_status(%s::xid8)", transaction_id)
    if status == "in progress":
        raise OperationalError("an earlier try has not ended yet")
    return bool(status == "committed")


def _row(sql: str, *values: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row: tuple[str, ...] = cursor.fetchone()
        return row
