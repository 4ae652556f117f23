"""Threads for the database keep their connection, and nothing else, from one work to the next."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import Error, connection, transaction

from chat.models import Conversation
from retrieval.db import database_threads, in_db
from webapp.models import User
from webapp.tenancy import as_nobody, as_system, as_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread() -> Any:
    with database_threads(1, "test") as threads:
        yield threads
        threads.submit(lambda: connection.close()).result()


def pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end(backend: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])


def titles() -> list[str]:
    return list(Conversation.objects.order_by("title").values_list("title", flat=True))


async def test_it_is_the_same_one_in_everybodys_own_scope(
    alice: User, bob: User, thread: ThreadPoolExecutor
) -> None:
    for user in (alice, bob):
        with as_user(user.pk):
            await in_db(Conversation.objects.create)(owner=user, title=user.name)
    pids = set()
    for _ in range(2):
        for scope, expected in (
            (as_user(alice.pk), ["Alice"]),
            (as_nobody(), []),
            (as_user(bob.pk), ["Bob"]),
            (as_system(), ["Alice", "Bob"]),
        ):
            with scope:
                assert await in_db(titles, thread)() == expected
                pids.add(await in_db(pid, thread)())
    assert len(pids) == 1


async def test_one_that_has_died_is_replaced_unnoticed(thread: ThreadPoolExecutor) -> None:
    first = await in_db(pid, thread)()
    await in_db(end)(first)
    await asyncio.sleep(0.2)
    assert await in_db(pid, thread)() != first


async def test_what_fails_leaves_nothing_behind(alice: User, thread: ThreadPoolExecutor) -> None:
    def fail() -> None:
        with transaction.atomic():
            Conversation.objects.create(owner=alice, title="half")
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")

    with as_user(alice.pk):
        with pytest.raises(Error):
            await in_db(fail, thread)()
        assert await in_db(titles, thread)() == []


async def test_other_threads_give_theirs_back() -> None:
    with ThreadPoolExecutor(1) as other:
        await in_db(pid, other)()
        assert (
            await asyncio.get_running_loop().run_in_executor(other, lambda: connection.connection)
            is None
        )
