"""What an answer took is entered also where the database is away at its end, and never twice."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, transaction

from chat import budgets, once
from chat.bills import billed
from chat.events import Delta, Finished, RunUsage, Started
from chat.models import Reservation, Usage
from chat.rights import Rights
from chat.spans import Clock, Trace
from chat.temporary import TemporaryRun
from webapp.models import Tier, User
from webapp.tenancy import as_user

END = Finished("stop", RunUsage(40, 0, 2))


@pytest.fixture
def rights(transactional_db: None, alice: User) -> Iterator[Rights]:
    Tier.objects.filter(slug="free").update(tokens_per_day=None, tokens_per_month=None)
    with as_user(alice.pk):
        yield Rights(User.objects.get(pk=alice.pk))


@contextmanager
def losing_its_word() -> Iterator[None]:
    """A COMMIT that comes through, and of which nobody hears."""
    with transaction.atomic():
        yield
    raise OperationalError("the connection was lost")


@pytest.fixture
def lost_commit(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the next transactions of a settlement are: the first one loses its word."""
    given = [losing_its_word]

    def atomic() -> Any:
        return (given.pop() if given else transaction.atomic)()

    monkeypatch.setattr(once, "transaction", SimpleNamespace(atomic=atomic))
    return given


async def answered(rights: Rights, *, is_run: bool) -> None:
    async with billed(rights, "small", is_run=is_run) as bill:
        bill.note(0, END)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 20
    while not await condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def entries() -> list[tuple[int, int]]:
    rows = Usage.objects.values_list("num_requests", "prompt_tokens")
    return [row async for row in rows]


@pytest.mark.parametrize("is_run", [True, False])
async def test_it_is_entered_when_the_database_is_back(
    rights: Rights, monkeypatch: pytest.MonkeyPatch, is_run: bool
) -> None:
    settle_all, tries = budgets.settle_all, iter(range(100))

    def away_at_first(*arguments: Any, **named: Any) -> None:
        if next(tries) < 2:
            raise OperationalError("the database is away")
        settle_all(*arguments, **named)

    monkeypatch.setattr(budgets, "settle_all", away_at_first)
    await asyncio.gather(*(answered(rights, is_run=is_run) for _ in range(2)))

    async def is_entered() -> bool:
        return await entries() == [(2, 80)]

    await until(is_entered)
    assert not await Reservation.objects.aexists()


@pytest.mark.parametrize("is_run", [True, False])
async def test_a_commit_that_nobody_hears_of_counts_once(
    rights: Rights, lost_commit: list[Any], is_run: bool
) -> None:
    await answered(rights, is_run=is_run)
    assert not lost_commit
    await asyncio.sleep(1.0)
    assert await entries() == [(1, 40)]


@pytest.fixture
def temporary(rights: Rights) -> TemporaryRun:
    ids = {"conversation_id": uuid4(), "message_id": uuid4()}
    run = TemporaryRun(uuid4(), user_id=rights.user.pk, trace=Trace(Clock(), "1"), **ids)
    run.model = "small"
    return run


def test_nor_does_that_of_a_temporary_chat_count_twice(
    temporary: TemporaryRun, lost_commit: list[Any]
) -> None:
    with pytest.raises(OperationalError):
        temporary._settle([END])
    temporary._settle([END])
    assert list(Usage.objects.values_list("num_requests", "prompt_tokens")) == [(1, 40)]


async def test_a_temporary_answer_that_ends_with_its_process_costs_what_it_has_said(
    temporary: TemporaryRun,
) -> None:
    temporary.events = [Started("small", "r", 1), Delta("Hello", 0, ids=(3, 4))]
    await temporary._release()
    rows = Usage.objects.values_list("num_requests", "completion_tokens")
    assert [row async for row in rows] == [(1, 2)]
