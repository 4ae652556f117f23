"""Summaries of chats behind a screen: what is told to the model that writes them."""

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest

from chat import (
    summaries,
)
from chat.answer_state import AnswerState
from chat.asking import AnswerRequest
from chat.events import (
    Delta,
    Event,
    Finished,
)
from chat.models import Conversation, Generation
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import Screen
from tests.chat.screens import BLOCKED, KEY, Kept, screen


@pytest.mark.usefixtures("ruled")
async def test_nor_in_what_is_summarised(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    one = screen({"documents": {"secrets": {"redact": 0.5}, "personal_data": {"block": 0.5}}})
    asked: list[AnswerRequest] = []

    async def screen_of(request: AnswerRequest) -> Screen:
        return one

    async def answer(request: AnswerRequest) -> AsyncGenerator[Event, None]:
        asked.append(request)
        yield Finished("stop")

    for name, fake in (("screen_of", screen_of), ("answer", answer), ("engine", lambda: far)):
        monkeypatch.setattr(summaries, name, fake)
    far = SimpleNamespace(is_upstream=lambda model: True)
    chat = Conversation(owner_id=7)
    generation = Generation(model="m", params={}, conversation=chat)
    rows = (f"[1] keys.txt\n{KEY}", "[2] people.txt\nWrite to otto@example.org.")
    plan = PromptPlan((Exchange("1", "What is the key?").answered_from(rows),))
    await summaries._ask(summaries._Chat(generation, plan, 0), plan)
    (content,) = [m["content"] for m in asked[0].messages if m["role"] == "user"]
    assert "[1] keys.txt\n[█" in content
    assert "[2] (This passage is not available any more.)" in content
    assert "people" not in content


@pytest.mark.parametrize("is_bad", [True, False])
async def test_of_what_is_summarised_only_questions_are_judged_as_such(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch, is_bad: bool
) -> None:
    judging.set()
    one = screen(BLOCKED)
    asked: list[AnswerRequest] = []

    async def answer(request: AnswerRequest) -> AsyncGenerator[Event, None]:
        asked.append(request)
        yield Finished("stop")

    far = SimpleNamespace(is_upstream=lambda model: True)
    for name, fake in (("answer", answer), ("engine", lambda: far)):
        monkeypatch.setattr(summaries, name, fake)
    monkeypatch.setattr(summaries, "screen_of", AsyncMock(return_value=one))
    reply: Any = ({"role": "assistant", "content": "A bad answer."},)
    question = "A bad question." if is_bad else "A question."
    ids = [str(uuid4()) for _ in range(2)]
    exchanges = (Exchange(ids[0], question, reply), Exchange(ids[1], "Well?", reply))
    plan = PromptPlan((*exchanges, Exchange("", summaries.REQUEST)))
    generation = Generation(model="m", params={}, conversation=Conversation(owner_id=7))
    await summaries._ask(summaries._Chat(generation, plan, 0), plan)
    (request,) = asked
    state = AnswerState(request, one)
    first = [] if is_bad else ["A question."]
    assert [text for text in state.asked_texts() if text] == [*first, "Well?", summaries.REQUEST]
    assert "A bad question." not in str(request.messages)


@pytest.mark.parametrize("num_messages", [4, 6])
@pytest.mark.parametrize("said", ["They met", "A bad tale"])
async def test_a_summary_of_many_steps_is_kept_where_a_question_in_them_is_stopped(
    judging: asyncio.Event,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
    num_messages: int,
    said: str,
) -> None:
    """It is stopped in a step of its own, or together with the next one."""
    judging.set()
    asked: list[AnswerRequest] = []

    async def answer(request: AnswerRequest) -> AsyncGenerator[Event, None]:
        asked.append(request)
        yield Delta(f"{said} {len(asked)}.", 0)
        yield Finished("stop")

    far = SimpleNamespace(is_upstream=lambda model: True)
    for name, fake in (("answer", answer), ("engine", lambda: far)):
        monkeypatch.setattr(summaries, name, fake)
    monkeypatch.setattr(summaries, "screen_of", AsyncMock(return_value=screen(BLOCKED)))
    reply: Any = ({"role": "assistant", "content": "Well."},)
    questions = ("Hello.", "This is bad.", "Thanks.", "And now?")
    exchanges = tuple(Exchange(str(uuid4()), question, reply) for question in questions)
    generation = Generation(model="m", params={}, conversation=Conversation(owner_id=7))
    chat = summaries._Chat(generation, PromptPlan(exchanges), 0)
    text = await summaries._summarise(chat, 3, summaries.MAX_TOKENS + num_messages, len)
    assert text == f"{said} 2."
    first, second = (str(request.messages) for request in asked)
    assert "Hello." in first
    assert "Thanks." in second
    assert (f"{said} 1." in second) == ("bad" not in said)
    assert "This is bad." not in first + second
