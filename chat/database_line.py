"""A connection to Postgres on which the event loop itself waits, for one statement many times a second.

A piece of in_db() wakes a thread, which wakes Postgres, is woken by it, and wakes the loop; where little
else is going on, each of these costs more than the statement's own work. Here the loop sends and hears.
Postgres is told of nobody's scope, which is for functions that set their own.
"""

import asyncio
import atexit
import contextlib
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import connections
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

CONNECT_S = 10.0
_NOT_LIBPQS = ("cursor_factory", "context", "prepare_threshold")  # of Django's parameters


class DatabaseLine:
    """One statement at a time; opened where there is none, or the last one has broken."""

    def __init__(self) -> None:
        self._connection: AsyncConnection[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fileno = -1
        self._results: list[Any] = []
        self._answer: asyncio.Future[list[Any]] | None = None
        atexit.register(self.close)

    async def column(self, statement: str, values: Sequence[str]) -> list[str]:
        """The first column of what a statement returns; it is a transaction of its own, whose parameters
        are $1, $2 … Raises django.db.DatabaseError's."""
        try:
            connection = await self._opened()
            (result,) = await self._ask(connection, statement, values)
            if result.status != ExecStatus.TUPLES_OK:
                raise error_from_result(result, encoding="utf-8")
        except psycopg.Error as error:
            with connections["default"].wrap_database_errors:
                raise error
        return [result.get_value(row, 0).decode() for row in range(result.ntuples)]

    def close(self) -> None:
        """It is opened anew for the next statement."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with contextlib.suppress(RuntimeError, ValueError, OSError):  # its loop may have ended
            assert self._loop is not None
            self._loop.remove_reader(self._fileno)
            self._loop.remove_writer(self._fileno)
        connection.pgconn.finish()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(psycopg.OperationalError("the connection is lost"))

    # --- what libpq does ------------------------------------------------------------------------

    async def _opened(self) -> AsyncConnection[Any]:
        loop = asyncio.get_running_loop()
        if self._connection is not None and self._loop is not loop:
            self.close()
        if self._connection is None:
            known = connections["default"].get_connection_params()
            own = {name: value for name, value in known.items() if name not in _NOT_LIBPQS}
            try:
                async with asyncio.timeout(CONNECT_S):
                    self._connection = await AsyncConnection.connect(**own, autocommit=True)
            except TimeoutError:
                raise psycopg.OperationalError("Postgres does not answer") from None
            self._loop, self._fileno = loop, self._connection.fileno()
            loop.add_reader(self._fileno, self._read)
        return self._connection

    async def _ask(
        self, connection: AsyncConnection[Any], statement: str, values: Sequence[str]
    ) -> list[Any]:
        self._results = []
        self._answer = asyncio.get_running_loop().create_future()
        try:
            pgconn = connection.pgconn
            pgconn.send_query_params(statement.encode(), [value.encode() for value in values])
            if pgconn.flush():  # the kernel has not taken all of it
                asyncio.get_running_loop().add_writer(self._fileno, self._send_rest)
            return await self._answer
        except BaseException:
            self.close()  # the next statement must not hear this one's answer
            raise
        finally:
            self._answer = None

    def _send_rest(self) -> None:
        if self._connection is None or self._loop is None:
            return
        try:
            if not self._connection.pgconn.flush():
                self._loop.remove_writer(self._fileno)
        except psycopg.Error:
            self.close()

    def _read(self) -> None:
        """Also where nothing was asked: a server that ends says so, and the line is opened anew."""
        if self._connection is None:
            return
        pgconn = self._connection.pgconn
        try:
            pgconn.consume_input()
            while self._answer is not None and not self._answer.done() and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    self._answer.set_result(self._results)
                else:
                    self._results.append(result)
        except psycopg.Error:
            self.close()
