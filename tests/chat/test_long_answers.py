"""An answer that takes longer than anybody thought holds on to what it holds of a budget."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from chat import holds, runs
from chat.db import in_db
from chat.models import Reservation
from tests.chat.sent_runs import begin, run_of, sent_by, until_stopped
from webapp.models import Tier
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def _held_until(run: runs.Run) -> datetime:
    def look() -> datetime:
        return Reservation.objects.get(pk=run.id).expires_at

    return await in_db(look)()


async def _is_held_on(run: runs.Run) -> None:
    first = await _held_until(run)
    begin(run)
    async with asyncio.timeout(20):
        while await _held_until(run) == first:  # noqa: ASYNC110 - rows tell nobody
            await asyncio.sleep(0.02)
    assert await _held_until(run) > first
    run.stop(None)
    assert run.task is not None
    await asyncio.wait_for(run.task, 20)
    runs._runs.pop(run.id)


def test_an_answer_holds_its_budget_while_it_is_written(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "answer", until_stopped)
    monkeypatch.setattr(runs, "RENEW_S", 0.05)
    Tier.objects.filter(pk=alice.tier_id).update(tokens_per_day=1_000_000)
    alice.refresh_from_db()
    with as_user(alice.pk):
        sent = sent_by(alice)
        monkeypatch.setattr(holds, "HOLD_S", 0.3)
        Reservation.objects.update(expires_at=sent.answer.created_at)
        asyncio.run(_is_held_on(run_of(sent)))
