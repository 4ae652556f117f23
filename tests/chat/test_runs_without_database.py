"""While Postgres is away an answer of a chat is left to whoever comes next; a temporary one goes on."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from chat import budgets, concurrency, recovery, revoked, runs, temporary
from chat.asking import AnswerRequest
from chat.events import Delta, Event, Failed, Finished, Started
from chat.models import Generation, Usage
from chat.spans import Clock, Trace
from tests.chat.sent_runs import run_of, sent_by
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

STARTED, SAID = Started("vitrine-small", "r", 7), Delta("Hello", 0, ids=(3, 4))


def fails(*_: object) -> Any:
    raise OperationalError("the connection is closed")


async def whole(*_: object) -> AsyncGenerator[Event, None]:
    for event in (STARTED, SAID, Finished("stop")):
        yield event


async def broken(*_: object) -> AsyncGenerator[Event, None]:
    """It asks the database for something in the middle."""
    yield STARTED
    yield SAID
    await asyncio.sleep(0.2)
    fails()


async def written(run: runs.Run, reads: frozenset[str] = frozenset()) -> None:
    """To its end, or until it is let go of."""

    async def after(_: runs.Run) -> None:
        return

    request = AnswerRequest(str(run.id), "vitrine-small", [], user="1", reads=reads)
    runs.start(run, request, after)
    assert run.task is not None
    await asyncio.wait({run.task}, timeout=20)
    assert run.task.done()
    runs._runs.pop(run.id, None)


def temporary_run(user: "User") -> temporary.TemporaryRun:
    id = uuid4()
    run = temporary.TemporaryRun(
        id, conversation_id=id, message_id=id, user_id=user.pk, trace=Trace(Clock(), "1")
    )
    run.model = "vitrine-small"
    return run


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_cannot_ask_the_database_is_left_to_the_next(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "answer", broken)
    with as_user(alice.pk):
        run = run_of(sent_by(alice))
        asyncio.run(written(run))
        row = Generation.objects.get(pk=run.id)
        assert (row.status, row.seq, row.lease_owner) == ("decode", 2, "")
    assert not run.has_ended
    with as_system():
        assert recovery.find_lost() == [(run.id, alice.pk)]


@pytest.mark.django_db(transaction=True)
def test_a_temporary_one_that_cannot_ask_fails(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else could go on with it."""
    monkeypatch.setattr(runs, "answer", broken)
    run = temporary_run(alice)
    with as_user(alice.pk):
        asyncio.run(written(run))
    assert isinstance(run.events[-1], Failed)


@pytest.mark.django_db(transaction=True)
def test_a_temporary_one_is_shown_to_its_end_and_entered_later(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = budgets.settle
    tries: list[None] = []
    shown_after: list[bool] = []

    def away_at_first(*arguments: Any, **named: Any) -> None:
        tries.append(None)
        if len(tries) < 3:
            fails()
        shown_after.append(run.has_ended)
        settle(*arguments, **named)

    async def until_settled() -> None:
        await written(run)
        assert run.settling is not None
        await run.settling

    monkeypatch.setattr(runs, "answer", whole)
    monkeypatch.setattr(concurrency, "renew", fails)
    monkeypatch.setattr(concurrency, "RENEW_S", 0.01)
    monkeypatch.setattr(temporary, "SETTLE_S", 0.05)
    monkeypatch.setattr(budgets, "settle", away_at_first)
    run = temporary_run(alice)
    with as_user(alice.pk):
        asyncio.run(until_settled())
        assert run.events == [STARTED, SAID, Finished("stop")]
        assert shown_after == [True]
        assert Usage.objects.get().num_requests == 1


@pytest.mark.django_db(transaction=True)
def test_a_temporary_one_ends_when_nobody_knows_what_may_still_be_read(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: object) -> AsyncGenerator[Event, None]:
        yield STARTED
        while True:
            yield SAID
            await asyncio.sleep(0.05)

    monkeypatch.setattr(runs, "answer", endless)
    monkeypatch.setattr(runs, "STORAGE_PATIENCE_S", 0.2)
    monkeypatch.setattr(revoked, "readable", fails)
    run = temporary_run(alice)
    with as_user(alice.pk):
        asyncio.run(written(run, reads=frozenset({str(uuid4())})))
    assert isinstance(run.events[-1], Failed)
