"""The log of an ended run is dropped some time later; a late follower gets the message itself."""

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import actions, run_log, run_log_reading
from chat.events import Delta, Finished, LogEvent, Started
from chat.following import Ended, follow
from chat.models import Generation, GenerationEvent, Message
from chat.rights import Rights
from chat.spans import Clock, Trace
from tests.plans import by_indexes, num_looked_at, queries
from webapp.celery import app
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

OWNER = "this process"
EVENTS: list[LogEvent] = [
    Started("vitrine-small", "r1", 7, prompt_ids=(1, 2)),
    Delta("Hello", 0, ids=(3,)),
    Delta(" there", 5, ids=(4,)),
    Finished("stop"),
]


def answered(user: "User", *, is_ended: bool = True, age: timedelta = timedelta()) -> Generation:
    """A run of `user` with its events; `age` says how long ago it ended."""
    with as_user(user.pk):
        draft = actions.Draft(client_id=str(uuid4()), text="Hi", model="vitrine-small")
        run = actions.send_message(Rights(user), draft, lease_owner=OWNER).generation
        run_log.append(run.pk, OWNER, 1, EVENTS[:3])
        if is_ended:
            run_log.finish(run.pk, OWNER, 4, EVENTS[3:], EVENTS, Trace(Clock(), "1"))
            Generation.objects.filter(pk=run.pk).update(finished_at=timezone.now() - age)
    return run


def prune() -> None:
    """As the Celery worker runs it: in the system's scope, which the task's base class enters."""
    app.loader.import_default_modules()
    app.tasks["chat.tasks.prune_events"]()


def num_events(user: "User", run: Generation) -> int:
    with as_user(user.pk):
        return GenerationEvent.objects.filter(generation=run.pk).count()


@pytest.mark.django_db(transaction=True)
def test_events_go_an_hour_after_the_end_and_not_before(alice: "User", bob: "User") -> None:
    old = answered(alice, age=timedelta(hours=2))
    bobs = answered(bob, age=timedelta(days=9))
    fresh = answered(alice, age=timedelta(minutes=50))
    running = answered(bob, is_ended=False)
    prune()
    prune()
    assert (num_events(alice, old), num_events(bob, bobs)) == (0, 0)
    assert (num_events(alice, fresh), num_events(bob, running)) == (4, 3)
    with as_user(alice.pk):
        assert Message.objects.get(generation=old).text == "Hello there"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after", [0, 2, 4])
def test_a_late_follower_gets_the_message(alice: "User", after: int) -> None:
    run = answered(alice, age=timedelta(hours=2))
    prune()

    async def news() -> list[object]:
        return [piece async for piece in follow(alice, run.pk, after)]

    with as_user(alice.pk):
        (piece,) = async_to_sync(news)()
    assert isinstance(piece, Ended)
    assert (piece.message["text"], piece.message["status"]) == ("Hello there", "complete")


@pytest.mark.django_db(transaction=True)
def test_many_runs_are_pruned_in_portions(alice: "User") -> None:
    for _ in range(5):
        answered(alice, age=timedelta(hours=2))

    with as_system():
        before = timezone.now() - timedelta(hours=1)
        assert [run_log_reading.prune(before, limit=2) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_runs_that_were_pruned_are_not_looked_at_again(alice: "User") -> None:
    for _ in range(9):
        answered(alice, age=timedelta(hours=2))
    prune()
    run = answered(alice, age=timedelta(hours=2))

    with as_system(), by_indexes():
        with queries() as done:
            assert run_log_reading.prune(timezone.now() - timedelta(hours=1)) == 1
        chosen = next(sql for sql in done if sql.startswith("SELECT"))
        assert num_looked_at(chosen, None, "chat_generation") <= 1
    assert num_events(alice, run) == 0
