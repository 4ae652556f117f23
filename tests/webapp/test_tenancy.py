"""The scope of row-level security reaches Postgres from wherever the work runs."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.db import database_sync_to_async
from django.db import DatabaseError, connection, transaction

from tests.sites import wait_until
from webapp.tenancy import as_nobody, as_system, as_user

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = """
CREATE TABLE secrets (owner_id bigint, word text);
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON secrets USING (
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
);
"""


@pytest.fixture(autouse=True)
def secrets() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
    with as_system(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO secrets VALUES (1, 'one'), (2, 'two'), (2, 'zwei')")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE secrets")


def words() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM secrets ORDER BY word")
        return [row[0] for row in cursor.fetchall()]


def words_and_close() -> list[str]:
    try:
        return words()
    finally:
        connection.close()


def test_without_a_scope_there_is_nothing_to_see() -> None:
    assert words() == []


def test_each_user_sees_their_own_and_the_system_all() -> None:
    with as_user(1):
        assert words() == ["one"]
        with as_system():
            assert words() == ["one", "two", "zwei"]
        with as_nobody():
            assert words() == []
        assert words() == ["one"]
    assert words() == []


def test_nobody_writes_for_somebody_else() -> None:
    with as_user(1), pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute("INSERT INTO secrets VALUES (2, 'planted')")


def test_the_app_role_is_bound_by_row_level_security() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False)


def test_a_rollback_does_not_leave_the_wrong_scope_behind() -> None:
    with as_user(1):
        assert words() == ["one"]
        with pytest.raises(ZeroDivisionError), transaction.atomic(), as_user(2):
            assert words() == ["two", "zwei"]
            raise ZeroDivisionError
        assert words() == ["one"]


def test_a_scope_first_told_inside_a_rolled_back_transaction_is_told_again() -> None:
    connection.close()
    with as_user(2):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert words() == ["two", "zwei"]
            raise ZeroDivisionError
        assert words() == ["two", "zwei"]


def test_a_rolled_back_savepoint_does_not_leave_the_wrong_scope_behind() -> None:
    with as_user(1), transaction.atomic():
        assert words() == ["one"]
        with pytest.raises(ZeroDivisionError), transaction.atomic(), as_user(2):
            assert words() == ["two", "zwei"]
            raise ZeroDivisionError
        assert words() == ["one"]
        with as_user(2):
            assert words() == ["two", "zwei"]


def test_a_failed_statement_in_a_savepoint_changes_nothing() -> None:
    with as_user(1), transaction.atomic():
        cursor = connection.cursor()
        with pytest.raises(DatabaseError), transaction.atomic(), as_user(2):
            cursor.execute("SELECT 1 / 0")
        assert words() == ["one"]


def test_a_pooled_connection_keeps_nothing_of_its_last_user() -> None:
    with as_user(2):
        assert words_and_close() == ["two", "zwei"]
    assert words_and_close() == []
    with as_user(1):
        assert words_and_close() == ["one"]


def test_connections_that_died_in_the_pool_are_noticed_before_they_are_used() -> None:
    def backend_pid(_: int) -> int:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                return int(cursor.fetchone()[0])
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        pids = set(pool.map(backend_pid, range(8)))
    with connection.cursor() as cursor:
        # These and no others: threads of other tests keep theirs open.
        cursor.execute("SELECT pg_backend_pid()")
        pids.discard(cursor.fetchone()[0])
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [list(pids)])
        assert cursor.rowcount >= 1

        def are_gone() -> bool:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)", [list(pids)]
            )
            return bool(cursor.fetchone()[0] == 0)

        wait_until(are_gone, what="the end of the connections")
    connection.close()
    with as_user(1), ThreadPoolExecutor(4) as pool:
        contexts = [contextvars.copy_context() for _ in range(8)]
        found = list(pool.map(lambda context: context.run(words_and_close), contexts))
    assert found == [["one"]] * 8


def test_a_streaming_cursor_sees_the_scope_too() -> None:
    with as_user(2), transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute("SELECT word FROM secrets ORDER BY word")
        assert [row[0] for row in cursor] == ["two", "zwei"]


def test_copy_sees_the_scope_too() -> None:
    connection.close()
    query = "COPY (SELECT word FROM secrets ORDER BY word) TO STDOUT"
    with as_user(2), connection.cursor() as cursor, cursor.copy(query) as copy:
        assert b"".join(copy) == b"two\nzwei\n"


async def test_the_scope_arrives_in_every_kind_of_thread() -> None:
    with as_user(2):
        assert await sync_to_async(words_and_close)() == ["two", "zwei"]
        assert await database_sync_to_async(words)() == ["two", "zwei"]
        assert await sync_to_async(words_and_close, thread_sensitive=False)() == ["two", "zwei"]
        assert await database_sync_to_async(words, thread_sensitive=False)() == ["two", "zwei"]
        assert await asyncio.to_thread(words_and_close) == ["two", "zwei"]
    assert await database_sync_to_async(words, thread_sensitive=False)() == []


async def test_tasks_inherit_the_scope_and_do_not_disturb_each_other() -> None:
    async def read(user_id: int) -> list[str]:
        with as_user(user_id):
            await asyncio.sleep(0.01)
            return await database_sync_to_async(words, thread_sensitive=False)()

    with as_user(1):
        inherited = asyncio.create_task(database_sync_to_async(words, thread_sensitive=False)())
    results = await asyncio.gather(*(read(1 + n % 2) for n in range(20)), inherited)
    assert results[:2] == [["one"], ["two", "zwei"]]
    assert results[:20] == results[:2] * 10
    assert results[20] == ["one"]


def test_a_change_of_scope_in_a_thread_comes_back_through_asgiref() -> None:
    async def in_loop() -> list[str]:
        return await sync_to_async(words_and_close)()

    with as_user(1):
        assert async_to_sync(in_loop)() == ["one"]


def test_a_bare_thread_has_no_scope() -> None:
    with as_user(1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(words_and_close).result() == []
    seen: list[list[str]] = []
    thread = threading.Thread(target=lambda: seen.append(words_and_close()))
    with as_system():
        thread.start()
        thread.join()
    assert seen == [[]]
