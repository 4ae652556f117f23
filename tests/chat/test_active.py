"""What counts as an answer under way, which the end of the process waits for."""

import asyncio
from typing import Any

import pytest

from chat import orchestrator
from chat.active import num_active
from chat.asking import AnswerRequest


async def test_an_answer_that_is_judged_first_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    is_judging = asyncio.Event()

    async def screen_of(request: Any) -> None:
        is_judging.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(orchestrator, "screen_of", screen_of)
    request = AnswerRequest("run", "vitrine-small", [{"role": "user", "content": "Hi"}], user="1")
    first = asyncio.ensure_future(anext(orchestrator.answer(request)))
    await asyncio.wait_for(is_judging.wait(), 10)
    assert num_active() == 1
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert num_active() == 0
