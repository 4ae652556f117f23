"""A chat that is deleted while its answer is written: the answer ends, is paid for, and stays ended."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import actions, budgets, delete_all, library, recovery, run_log
from chat.events import Delta, LogEvent, RunUsage, Started, Stopped
from chat.models import Generation, GenerationStatus
from chat.rights import Rights
from chat.spans import Clock, Trace
from webapp.models import Tier, User
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from uuid import UUID

pytestmark = pytest.mark.django_db(transaction=True)
OWNER = "the process that writes"
SAID: list[LogEvent] = [Started("vitrine-small", "r1", 7), Delta("Hello", 0, ids=(3, 4, 5))]


@pytest.fixture(autouse=True)
def mine(alice: User) -> Iterator[None]:
    Tier.objects.filter(slug="free").update(tokens_per_day=100_000)
    with as_user(alice.pk):
        yield


def begun(user: User) -> Generation:
    draft = actions.Draft(client_id=uuid4().hex, text="Hi", model="vitrine-small")
    run = actions.send_message(Rights(user), draft, lease_owner=OWNER).generation
    run_log.append(run.pk, OWNER, 1, SAID)
    assert spent_by(user)[1] > 0
    return run


def change(user: User, run: Generation, *, deleted: bool) -> None:
    library.change(user, run.conversation_id, {"deleted": deleted}, None)


def spent_by(user: User) -> tuple[int, int]:
    """Today's tokens, and those that are held."""
    spent = budgets.spent_by(Rights(User.objects.get(pk=user.pk)))
    return spent.day_tokens, spent.held_tokens


def lost() -> list["tuple[UUID, int]"]:
    with as_system():
        return recovery.find_lost()


def assert_stopped(user: User, run: Generation) -> None:
    """Also once the deletion is undone: nobody goes on with it."""
    change(user, run, deleted=False)
    run.refresh_from_db()
    assert run.status == GenerationStatus.STOPPED
    assert (run.message.status, run.message.text) == ("stopped", "Hello")
    assert lost() == []


def test_its_writer_hears_of_it_and_stores_the_end(alice: User) -> None:
    run = begun(alice)
    assert not run_log.renew(run.pk, OWNER)
    change(alice, run, deleted=True)
    assert run_log.renew(run.pk, OWNER), "a stop was requested"
    end = Stopped(5, RunUsage(90, 0, 3))
    run_log.finish(run.pk, OWNER, 3, [end], [*SAID, end], Trace(Clock(), "1"))
    assert spent_by(alice) == (93, 0)
    assert_stopped(alice, run)


def test_it_stops_when_the_deletion_was_undone_before_the_writer_heard(alice: User) -> None:
    run = begun(alice)
    change(alice, run, deleted=True)
    change(alice, run, deleted=False)
    assert run_log.renew(run.pk, OWNER)


def test_it_ends_when_its_writer_has_died(alice: User) -> None:
    run = begun(alice)
    past = timezone.now() - timedelta(seconds=1)
    Generation.objects.filter(pk=run.pk).update(lease_until=past)
    change(alice, run, deleted=True)
    assert lost() == [(run.pk, alice.pk)]
    assert async_to_sync(recovery.resume)(run.pk)
    assert spent_by(alice) == (3, 0), "what was delivered"
    assert_stopped(alice, run)


def test_what_is_deleted_for_good_is_paid_for(alice: User) -> None:
    run = begun(alice)
    assert delete_all.delete_portion(alice) == ([run.conversation_id], 0)
    assert spent_by(alice) == (3, 0)
    with pytest.raises(run_log.LeaseLost):
        run_log.renew(run.pk, OWNER)
