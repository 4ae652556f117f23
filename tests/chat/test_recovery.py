"""An answer whose lease ran out is taken up, unless this very process is still writing it."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import actions, recovery, run_log, runs
from chat.events import Delta, Failed, Started
from chat.models import Generation
from chat.rights import Rights
from chat.spans import Clock, Trace
from chat.waiting import Waits, waiting
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User


def _overdue(user: "User") -> Generation:
    """A run of this process that did not renew its lease in time; a stop spares it the engine."""
    with as_user(user.pk):
        draft = actions.Draft(client_id=str(uuid4()), text="Hi", model="vitrine-small")
        run = actions.send_message(Rights(user), draft, lease_owner=runs.PROCESS_ID).generation
        run_log.append(run.pk, runs.PROCESS_ID, 1, [Started("m", "r", 7), Delta("Hel", 0)])
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
    end = recovery._end_without_engine(Generation(), list(events), is_revoked=False)
    assert isinstance(end, Failed) is ends
