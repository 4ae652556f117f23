"""An answer whose lease ran out is taken up, unless this very process is still writing it."""

import asyncio
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import actions, recovery, run_log, run_log_reading, runs, turns
from chat.events import (
    Delta,
    Failed,
    LogEvent,
    RunUsage,
    Started,
    ToolCall,
    ToolResult,
)
from chat.models import Generation, GenerationEvent, Usage
from chat.rights import Rights
from chat.spans import Clock, Trace
from chat.turns import Taken
from chat.waiting import Waits, waiting
from webapp import chores
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User


def _begun(user: "User", events: list[LogEvent]) -> Generation:
    """A run of this process, in the user's scope."""
    draft = actions.Draft(client_id=str(uuid4()), text="Hi", model="vitrine-small")
    run = actions.send_message(Rights(user), draft, lease_owner=runs.PROCESS_ID).generation
    run_log.append(run.pk, runs.PROCESS_ID, 1, events)
    return run


def _overdue(user: "User") -> Generation:
    """A run of this process that did not renew its lease in time; a stop spares it the engine."""
    with as_user(user.pk):
        run = _begun(user, [Started("m", "r", 7), Delta("Hel", 0)])
        run_log.request_stop(run.pk)
        past = timezone.now() - timedelta(seconds=1)
        Generation.objects.filter(pk=run.pk).update(lease_until=past)
    return run


async def _resume_beside_its_writer(run_id: UUID) -> list[bool]:
    """What resume() says while this process writes the run, and afterwards."""
    trace = Trace(Clock(), "1")
    run = runs.Run(run_id, conversation_id=uuid4(), message_id=uuid4(), user_id=None, trace=trace)
    # A writer that is busy with something else: what it writes does not matter here.
    run.task = asyncio.create_task(asyncio.sleep(60))
    runs._runs[run_id] = run
    try:
        during = await recovery.resume(run_id)
        run.task.cancel()
        await asyncio.gather(run.task, return_exceptions=True)
        return [during, await recovery.resume(run_id)]
    finally:
        del runs._runs[run_id]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_this_process_writes_is_not_lost(alice: "User") -> None:
    run = _overdue(alice)
    with as_system():
        assert recovery.find_lost() == [(run.pk, alice.pk)]
        assert Waits.ANSWERS in waiting()
    with as_user(alice.pk):
        assert async_to_sync(_resume_beside_its_writer)(run.pk) == [False, True]
        run.refresh_from_db()
    assert run.attempts == 2, "begun, and taken up once"
    assert run.status == "stopped"


def _lost(user: "User") -> Generation:
    """A run of a process that died."""
    with as_user(user.pk):
        run = _begun(user, [Started("m", "r", 7), Delta("Hello", 0)])
        past = timezone.now() - timedelta(seconds=1)
        Generation.objects.filter(pk=run.pk).update(lease_owner="dead", lease_until=past)
    return run


def _log_what_a_later_version_does(run: Generation) -> None:
    with as_system():
        GenerationEvent.objects.create(generation=run, seq=3, payload={"kind": "sang", "tune": 1})
        Generation.objects.filter(pk=run.pk).update(seq=3)


def _stand_of(run: Generation) -> str:
    with as_system():
        past = timezone.now() - timedelta(seconds=1)
        Generation.objects.filter(pk=run.pk).update(lease_until=past)
        return str(Generation.objects.get(pk=run.pk).status)


@pytest.mark.django_db(transaction=True)
def test_one_that_cannot_be_taken_up_keeps_no_other_waiting(alice: "User", bob: "User") -> None:
    broken = _lost(alice)
    _log_what_a_later_version_does(broken)
    others = [_lost(bob), _lost(alice)]
    with as_system():
        Generation.objects.filter(pk__in=[run.pk for run in others]).update(stop_requested=True)
    async_to_sync(chores.recover_lost)()
    assert [_stand_of(run) for run in others] == ["stopped", "stopped"]


@pytest.mark.django_db(transaction=True)
def test_one_that_cannot_be_read_ends_with_what_can(alice: "User") -> None:
    """It would take a place among its user's answers for ever."""
    run = _lost(alice)
    _log_what_a_later_version_does(run)
    for _ in range(recovery.MAX_ATTEMPTS):
        async_to_sync(chores.recover_lost)()
        if (status := _stand_of(run)) == "failed":
            break
    assert status == "failed"
    with as_user(alice.pk):
        run.message.refresh_from_db()
        assert (run.message.status, run.message.text) == ("failed", "Hello")
        assert list(run.events.order_by("seq").values_list("seq", flat=True)) == [1, 2, 3, 4]


CALLED = [
    Started("m", "r", 7, 0, prompt_ids=tuple(range(10))),
    Delta("Hm.", 0, ids=(1, 2, 3)),
    ToolCall("c1", "clock", "{}"),
]
WENT_ON = [
    ToolResult("c1", "noon"),
    Started("m", "r", 7, 1, prompt_ids=tuple(range(20))),
    Delta("It", 3, ids=(4, 5)),
]


@pytest.mark.parametrize(
    ("events", "by_ended"),
    [(CALLED, RunUsage(10, 0, 3)), ([*CALLED, *WENT_ON], RunUsage(10, 0, 3))],
)
@pytest.mark.django_db
def test_who_takes_an_answer_up_knows_what_its_turns_have_taken(
    alice: "User", events: list[LogEvent], by_ended: RunUsage
) -> None:
    """The engine counts the turn that goes on, and no other."""
    with as_user(alice.pk):
        run = _begun(alice, events)
        assert run_log_reading.load(run).taken.by_ended == by_ended


@pytest.mark.django_db
def test_of_another_server_all_that_was_written_is_over(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on behind it, and counts what it writes now."""
    monkeypatch.setattr(turns, "is_known_elsewhere", lambda model: True)
    with as_user(alice.pk):
        run = _begun(alice, [Started("m", "r", 7), Delta("x" * 30, 0), Delta("y" * 30, 30)])
        assert run_log_reading.load(run).taken.by_ended == RunUsage(0, 0, 20)


@pytest.mark.django_db
def test_what_is_deleted_for_good_costs_what_it_has_taken(alice: "User") -> None:
    with as_user(alice.pk):
        run = _begun(alice, [*CALLED, *WENT_ON])
        run_log.give_up(Generation.objects.filter(pk=run.pk))
        spent = Usage.objects.get()
        assert (spent.prompt_tokens, spent.completion_tokens) == (30, 5)


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_nobody_goes_on_with_costs_what_it_has_taken(alice: "User") -> None:
    with as_user(alice.pk):
        run = _begun(alice, [*CALLED, *WENT_ON])
        run_log.request_stop(run.pk)
        run_log.release(run.pk, runs.PROCESS_ID)
        assert async_to_sync(recovery.resume)(run.pk)
        run.message.refresh_from_db()
        assert run.message.usage == asdict(RunUsage(30, 0, 5))
        spent = Usage.objects.get()
        assert (spent.prompt_tokens, spent.completion_tokens) == (30, 5)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("The key is [████████]", True),
        ("The key is [███]\n", True),
        ("The key is [████████]. Keep it", False),
        ("Mark it like [this]", False),
    ],
)
def test_what_is_being_taken_out_is_not_gone_on_with(text: str, ends: bool) -> None:
    """The next process would not know that it is a key's second half which comes now."""
    events = [Started("m", "r", 7), Delta("Hm.", 0, "reasoning"), Delta(text, 0)]
    logged = run_log_reading.Logged(list(events), (), (), Taken())
    end = recovery._end_without_engine(Generation(), logged, is_revoked=False)
    assert isinstance(end, Failed) is ends
