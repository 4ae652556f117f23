"""A connection that the event loop waits on: what it answers, and what it does when something breaks."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest
from django.db import DataError, OperationalError

from chat.database_line import DatabaseLine

pytestmark = pytest.mark.django_db(transaction=True)


def on_a_line(talk: Callable[[DatabaseLine], Awaitable[None]]) -> None:
    async def run() -> None:
        with closing(DatabaseLine()) as line:
            await talk(line)

    asyncio.run(run())


async def pid_of(line: DatabaseLine) -> str:
    (pid,) = await line.column("SELECT pg_backend_pid()", [])
    return pid


def test_it_answers_in_rows_and_takes_what_no_buffer_holds() -> None:
    async def talk(line: DatabaseLine) -> None:
        assert await line.column("SELECT generate_series(1, $1::int)", ["3"]) == ["1", "2", "3"]
        assert await line.column("SELECT 1 WHERE false", []) == []
        text = "ü" * 3_000_000
        assert await line.column("SELECT length($1::text)", [text]) == ["3000000"]
        assert await line.column("SELECT $1::text", [text]) == [text]

    on_a_line(talk)


def test_a_statement_that_fails_says_so_as_django_does_and_the_next_one_is_heard() -> None:
    async def talk(line: DatabaseLine) -> None:
        with pytest.raises(DataError):
            await line.column("SELECT 1 / $1::int", ["0"])
        assert await line.column("SELECT 2", []) == ["2"]

    on_a_line(talk)


def test_who_leaves_a_statement_leaves_no_answer_to_the_next() -> None:
    async def talk(line: DatabaseLine) -> None:
        await line.column("SELECT 1", [])
        slow = asyncio.create_task(line.column("SELECT 'late' FROM pg_sleep(0.3)", []))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert await line.column("SELECT 'mine'", []) == ["mine"]

    on_a_line(talk)


def test_it_is_opened_anew_when_postgres_has_hung_up() -> None:
    async def talk(line: DatabaseLine) -> None:
        with closing(DatabaseLine()) as other:
            pid = await pid_of(line)
            await other.column("SELECT pg_terminate_backend($1::int)", [pid])
            async with asyncio.timeout(10):
                while line._connection is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert await pid_of(line) != pid

            waiting = asyncio.create_task(line.column("SELECT pg_sleep(20)", []))
            await asyncio.sleep(0.1)
            statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1"
            await other.column(statement, ["SELECT pg_sleep(20)%"])
            with pytest.raises(OperationalError):
                await waiting
            assert await line.column("SELECT 3", []) == ["3"]

    on_a_line(talk)


def test_another_loop_has_a_connection_of_its_own() -> None:
    line = DatabaseLine()
    pids = {asyncio.run(pid_of(line)) for _ in range(2)}
    line.close()
    assert len(pids) == 2


def test_it_leaves_no_connection_behind() -> None:
    async def talk(line: DatabaseLine) -> None:
        pid = await pid_of(line)
        line.close()
        with closing(DatabaseLine()) as other:
            statement = "SELECT pid FROM pg_stat_activity WHERE pid = $1::int"
            async with asyncio.timeout(10):
                while await other.column(statement, [pid]):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    on_a_line(talk)
