"""A stop that reaches another process than the one that writes ends the text where its reader was."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import recovery, run_log, runs, shielded
from chat.db import in_db
from chat.models import Generation
from chat.stopping import stop_run
from tests.chat.sent_runs import SAID, begin, run_of, sent_by, until_stopped
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def stopped_elsewhere(run: runs.Run, chars: int) -> None:
    begin(run)
    while len(run.events) < len(SAID):
        await run.subscribe().wait()
    await in_db(run_log.request_stop)(run.id, chars)
    assert run.task is not None
    await asyncio.wait_for(run.task, 20)
    runs._runs.pop(run.id)


def test_the_writer_hears_how_far_it_was_read(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "answer", until_stopped)
    monkeypatch.setattr(runs, "RENEW_S", 0.05)
    with as_user(alice.pk):
        sent = sent_by(alice)
        run = run_of(sent)
        asyncio.run(stopped_elsewhere(run, 5))
        sent.answer.refresh_from_db()
        assert (sent.answer.status, sent.answer.text) == ("stopped", "Hello")


async def stopped_here(run: runs.Run, user: "User") -> None:
    runs._runs[run.id] = run
    try:
        await stop_run(user, run.id, 5)
        assert run.control.is_stopped, "at once"
        while shielded._unended:
            await asyncio.wait(list(shielded._unended))
    finally:
        del runs._runs[run.id]


def test_a_stop_outlives_the_process_that_has_heard_it(alice: "User") -> None:
    """Or has lost the answer to another one, and does not know yet."""
    with as_user(alice.pk):
        sent = sent_by(alice)
        run_log.append(sent.generation.pk, runs.PROCESS_ID, 1, SAID)
        asyncio.run(stopped_here(run_of(sent), alice))
        Generation.objects.filter(pk=sent.generation.pk).update(lease_until=timezone.now())
        assert async_to_sync(recovery.resume)(sent.generation.pk)
        sent.answer.refresh_from_db()
        assert (sent.answer.status, sent.answer.text) == ("stopped", "Hello")


def test_so_does_who_takes_up_what_nobody_writes(alice: "User") -> None:
    with as_user(alice.pk):
        sent = sent_by(alice, "a process that died")
        run_log.append(sent.generation.pk, "a process that died", 1, SAID)
        run_log.request_stop(sent.generation.pk, 5)
        Generation.objects.filter(pk=sent.generation.pk).update(lease_until=timezone.now())
        assert async_to_sync(recovery.resume)(sent.generation.pk)
        sent.answer.refresh_from_db()
        assert (sent.answer.status, sent.answer.text) == ("stopped", "Hello")
