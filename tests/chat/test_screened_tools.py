"""Calls of tools and what they bring, behind a screen."""

import asyncio
from collections.abc import AsyncGenerator
from unittest.mock import AsyncMock

import pytest

from chat import (
    orchestrator,
    screening,
)
from chat.events import (
    Event,
    Finished,
    Refused,
    Started,
    ToolCall,
    ToolResult,
)
from chat.screen import Screen
from chat.spans import Clock
from chat.storable import is_storable
from tests.chat.screens import KEY, Kept, screen
from tests.chat.test_obedient_model import ObedientEngine, Outbox, heard, request, use


@pytest.mark.usefixtures("ruled")
@pytest.mark.parametrize(
    "arguments",
    [
        f'{{"to": "{KEY}"}}',
        '{"to": "\\u0041KIAIOSFODNN7EXAMPLE"}',
        f'{{"to": "{KEY}", "half": "\\ud800", "nul": "\\u0000"}}',
    ],
)
async def test_a_call_with_a_secret_is_stopped_and_not_run(kept: Kept, arguments: str) -> None:
    async def calling() -> AsyncGenerator[Event, None]:
        yield Started("m", "", 1)
        yield ToolCall("c1", "send_mail", arguments)
        yield Finished("tool_calls")

    one = screen({"output": {"secrets": {"redact": 0.5}}})
    seen = [event async for event in screening.screened(one, ["hi"], calling, Clock())]
    assert isinstance(seen[-1], Refused)
    assert not any(isinstance(event, ToolCall) for event in seen)
    assert all(is_storable(decision.text) for decision, _ in kept)


@pytest.mark.parametrize(("mail", "is_withheld"), [("A bad mail.", True), ("A kind mail.", False)])
async def test_what_a_tool_has_found_is_judged_before_the_model_reads_it(
    judging: asyncio.Event,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
    mail: str,
    is_withheld: bool,
) -> None:
    judging.set()
    engine = ObedientEngine()
    use(monkeypatch, engine)
    asked = request(Outbox(), mail, "api")
    one = Screen(asked, screen({"tools": {"illicit": {"block": 0.5}}}).chosen)
    monkeypatch.setattr(orchestrator, "screen_of", AsyncMock(return_value=one))
    seen = await heard(orchestrator.answer(asked))
    result = next(event for event in seen if isinstance(event, ToolResult))
    assert (result.is_error, mail in result.content) == (is_withheld, not is_withheld)
    assert (mail in "".join(engine.prompts)) == (not is_withheld)
    assert [decision.action for decision, _ in kept if decision.action != "allow"] == (
        ["block"] if is_withheld else []
    )


@pytest.mark.usefixtures("mixed")
async def test_a_call_that_also_goes_to_review_is_not_run_with_its_secret(kept: Kept) -> None:
    async def calling() -> AsyncGenerator[Event, None]:
        yield Started("m", "", 1)
        yield ToolCall("c1", "send_mail", f'{{"text": "hateful {KEY}"}}')
        yield Finished("tool_calls")

    one = screen({"output": {"secrets": {"redact": 0.5}, "hate": {"review": 0.5}}})
    seen = [event async for event in screening.screened(one, ["hi"], calling, Clock())]
    assert isinstance(seen[-1], Refused)
    assert not any(isinstance(event, ToolCall) for event in seen)
    [(decision, _)] = kept
    assert (decision.action, decision.review) == ("block", "")


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("action", ["ask", "block", "note"])
async def test_a_review_hides_no_stop(kept: Kept, action: str) -> None:
    one = screen({"input": {"secrets": {action: 0.5}, "hate": {"review": 0.5}}})
    outcome = await one.judge("input", [f"A hateful key is {KEY}."])
    refused = await one.decide("input", outcome)
    [(decision, _)] = kept
    if action == "note":
        assert refused is None
        assert (decision.action, decision.review) == ("review", "open")
        return
    assert isinstance(refused, Refused)
    assert (decision.action, decision.review) == (action, "")
