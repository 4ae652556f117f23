"""A temporary answer that is asked for twice at the same time is written once."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest

from chat import draining, runs, temporary, windows
from chat.errors import ShuttingDown
from chat.events import Delta, Event, Finished, Started
from chat.models import Reservation, Usage
from chat.rights import Rights
from chat.temporary import Ask, TemporaryRun
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def with_tier(alice: "User") -> None:
    """Read before there is a loop, as a socket's user is."""
    assert alice.tier.concurrent_runs
    assert not alice.granted_models


async def whole(*_: object) -> AsyncGenerator[Event, None]:
    for event in (
        Started("vitrine-small", "r", 7),
        Delta("Hello", 0, ids=(3, 4)),
        Finished("stop"),
    ):
        yield event


def slowly(work: Any) -> Any:
    """As where a long chat is brought along."""

    def done(*arguments: Any) -> Any:
        time.sleep(0.3)
        return work(*arguments)

    return done


def asks(client_id: str) -> Ask:
    question = {"role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    return Ask(client_id, "vitrine-small", tuple(temporary.said_of([question])))


async def answered(user: "User", *asked: Ask) -> list[TemporaryRun]:
    begun = await asyncio.gather(*(temporary.answer(Rights(user), ask) for ask in asked))
    for run in begun:
        assert run.task is not None
        await asyncio.wait({run.task}, timeout=20)
        assert run.settling is not None
        await run.settling
        runs._runs.pop(run.id, None)
    await windows.close()
    return begun


def test_two_frames_of_one_id_are_one_answer(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page whose line is lost says again what was not accepted, while the first is on its way."""
    monkeypatch.setattr(runs, "answer", whole)
    monkeypatch.setattr(temporary, "_asked", slowly(temporary._asked))
    with as_user(alice.pk):
        first, again = asyncio.run(answered(alice, asks("one"), asks("one")))
        assert first is again
        assert Usage.objects.get().num_requests == 1
        assert not Reservation.objects.exists()


def test_what_is_asked_as_the_server_ends_holds_nothing(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted = temporary._admit

    def then_the_end(*arguments: Any) -> Any:
        monkeypatch.setattr(draining, "_is_draining", True)
        return admitted(*arguments)

    monkeypatch.setattr(temporary, "_admit", then_the_end)
    with as_user(alice.pk):
        with pytest.raises(ShuttingDown):
            asyncio.run(answered(alice, asks("late")))
        assert not Reservation.objects.exists()


def test_one_who_leaves_before_it_begins_holds_nothing(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place among the answers at the same time would be taken until the lease ends."""
    monkeypatch.setattr(temporary, "_admit", slowly(temporary._admit))

    async def leaving() -> None:
        asking = asyncio.create_task(temporary.answer(Rights(alice), asks("gone")))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.sleep(1.0)
        await windows.close()

    with as_user(alice.pk):
        asyncio.run(leaving())
        assert not Reservation.objects.exists()
