"""Django's Postgres backend, which tells every connection whose rows it may see.

Before the first statement on a connection from the pool, and whenever the scope has changed, the
setting `vitrine.scope` is set. Postgres undoes a setting that was made in a transaction or
savepoint which is rolled back, so a rollback makes us forget what was set.
"""

from collections.abc import Sequence
from time import monotonic
from typing import Any

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base as stock
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg_pool import ConnectionPool

from retrieval.db import keeps_connection
from webapp.postgres.liveness import check, is_alive
from webapp.tenancy import current_scope

KEPT_S = 60.0
"""How long a thread keeps a connection, at most."""
_SET_SCOPE = "SELECT set_config('vitrine.scope', %s, false)"


class DatabaseWrapper(stock.DatabaseWrapper):
    """`_told_scope` is what this connection was told last; None means unknown."""

    _told_scope: str | None = None
    _rolling_back = False

    @property
    def pool(self) -> Any:
        """Django's, but for how a connection is looked at before it is used again.

        After a restart of Postgres the pool is full of the dead.
        """
        options = self.settings_dict["OPTIONS"].get("pool")
        if options and self.alias != NO_DB_ALIAS and self.alias not in self._connection_pools:  # type: ignore[attr-defined]
            pool = ConnectionPool(
                kwargs=self.get_connection_params() | {"autocommit": True},
                open=False,
                configure=self._configure_connection,  # type: ignore[attr-defined]
                check=check,
                **options,
            )
            self._connection_pools.setdefault(self.alias, pool)  # type: ignore[attr-defined]
        return super().pool  # type: ignore[misc]

    def tell_scope(self) -> None:
        if self._rolling_back:
            return  # a failed transaction takes no statement but the rollback
        self.validate_no_broken_transaction()
        scope = current_scope()
        if scope != self._told_scope:
            self._told_scope = None
            with self.wrap_database_errors:
                self.connection.execute(_SET_SCOPE, [scope])
            self._told_scope = scope

    def connect(self) -> None:
        super().connect()
        if keeps_connection():
            self.close_at = monotonic() + KEPT_S

    def close_if_unusable_or_obsolete(self) -> None:
        """Before and after each piece of work: a thread that keeps its connection gives it back where it
        has died, had an error or was kept for long."""
        if self.connection is None or not keeps_connection() or self.in_atomic_block:
            return super().close_if_unusable_or_obsolete()
        is_old = self.close_at is not None and monotonic() >= self.close_at
        if is_old or self.errors_occurred or not self.autocommit or not is_alive(self.connection):
            self.close()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self._told_scope = None
        return super().get_new_connection(conn_params)

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return _ScopedCursor(cursor, self)

    def make_debug_cursor(self, cursor: Any) -> CursorDebugWrapper:
        return _ScopedDebugCursor(cursor, self)

    def _rollback(self) -> None:
        self._told_scope = None
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        self._rolling_back = True
        try:
            super()._savepoint_rollback(sid)  # type: ignore[misc]
        finally:
            self._rolling_back = False
            self._told_scope = None


class _TellsScope(CursorWrapper):
    """Tells the scope before each statement."""

    db: DatabaseWrapper
    cursor: Any

    def copy(self, *arguments: Any) -> Any:
        self.db.tell_scope()
        return self.cursor.copy(*arguments)

    def _execute(self, sql: str, params: Any, *ignored: Any) -> Any:
        self.db.tell_scope()
        return super()._execute(sql, params, *ignored)  # type: ignore[misc]

    def _executemany(self, sql: str, param_list: Sequence[Any], *ignored: Any) -> Any:
        self.db.tell_scope()
        return super()._executemany(sql, param_list, *ignored)  # type: ignore[misc]


class _ScopedCursor(_TellsScope):
    pass


class _ScopedDebugCursor(_TellsScope, CursorDebugWrapper):
    pass
