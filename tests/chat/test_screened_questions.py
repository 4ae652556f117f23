"""Who is to answer for a text, and what is left out or asked about."""

import asyncio
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest

from chat import (
    decisions,
    history,
    screening,
)
from chat.answer_state import AnswerState
from chat.events import (
    LeftOut,
    Refused,
)
from chat.models import Message
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import Screen
from moderation.text_hashes import text_hash
from tests.chat.screens import BLOCKED, Kept, screen


@pytest.mark.parametrize(
    ("question", "is_brought", "points"),
    [("Go on.", True, 0.0), ("Go on.", False, 0.0), ("And now this is bad.", True, 2.0)],
)
async def test_words_of_others_count_against_nobody(
    judging: asyncio.Event, kept: Kept, question: str, is_brought: bool, points: float
) -> None:
    judging.set()
    said: Any = ({"role": "assistant", "content": "That is bad."},)
    shared = Exchange("1", "This is bad, too.", said, unjudged=said, is_brought=is_brought)
    plan = PromptPlan((shared, Exchange("2", question)))
    one = screen({**BLOCKED, "strikes": {"illicit": 2}})
    one = Screen(replace(one.request, plan=plan), one.chosen)
    texts = AnswerState(one.request, one).asked_texts()
    refused = await one.decide("input", await one.judge("input", texts))
    assert refused is not None
    assert [counted for _, counted in kept] == [points]


SAID: Any = {"role": "assistant", "content": "That is bad."}


CALLING: Any = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": {"for": "bad"}}}],
}


@pytest.mark.parametrize(
    ("request_", "points"),
    [
        # The system prompt of an assistant that somebody has shared.
        ({"plan": PromptPlan((Exchange("1", "Hi."),), system="Be bad.")}, 0.0),
        ({"plan": PromptPlan((Exchange("1", "This is bad."),), system="Be bad.")}, 2.0),
        # A temporary chat sends the model's answer back, and so do programs.
        (
            {
                "source": "temporary",
                "plan": PromptPlan((Exchange("1", "Hi."),)),
                "begun": (SAID,),
            },
            0.0,
        ),
        ({"source": "api", "messages": [{"role": "user", "content": "Hi."}, SAID]}, 0.0),
        ({"source": "api", "messages": [SAID, {"role": "user", "content": "Go on."}]}, 0.0),
        ({"source": "api", "messages": [SAID, {"role": "user", "content": "Be bad."}]}, 2.0),
        (
            {
                "source": "api",
                "messages": [
                    {"role": "user", "content": "Be bad."},
                    {"role": "assistant", "content": "No."},
                    {"role": "user", "content": "And now?"},
                ],
            },
            0.0,
        ),
        ({"source": "api", "messages": [{"role": "user", "content": "Hi."}, CALLING]}, 0.0),
    ],
)
async def test_only_what_somebody_asks_counts_against_them(
    judging: asyncio.Event, kept: Kept, request_: dict[str, Any], points: float
) -> None:
    judging.set()
    one = screen({**BLOCKED, "strikes": {"illicit": 2}})
    one = Screen(replace(one.request, **request_), one.chosen)
    texts = AnswerState(one.request, one).asked_texts()
    assert await one.decide("input", await one.judge("input", texts)) is not None
    assert [counted for _, counted in kept] == [points]


def test_what_programs_tell_of_their_tools_is_no_question() -> None:
    result: Any = {"role": "tool", "tool_call_id": "c", "content": "A bad page.", "name": "look"}
    one = screen(BLOCKED)
    asked = replace(
        one.request, source="api", messages=[{"role": "user", "content": "Hi."}, result]
    )
    texts = AnswerState(asked, one).asked_texts()
    assert [text for text in texts if text] == ["Hi.", "look"]


async def test_an_answered_question_that_is_blocked_by_now_is_left_out(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging.set()
    ids = [str(uuid4()) for _ in range(4)]
    reply: Any = ({"role": "assistant", "content": "Well."},)
    texts = ("Hello.", "This is bad.", "Thanks.", "And now?")
    exchanges = tuple(Exchange(*one, reply, num_messages=2) for one in zip(ids, texts, strict=True))
    plan = PromptPlan((*exchanges[:3], replace(exchanges[3], reply=())))
    one = screen({**BLOCKED, "strikes": {"illicit": 2}})
    left = await screening.without_stopped(one, plan)
    assert [exchange.question for exchange in left.exchanges] == ["Hello.", "Thanks.", "And now?"]
    assert left.left_out == LeftOut(ids[0], 0, stopped=(ids[1],))
    ((decision, points),) = kept
    assert (str(decision.message_id), decision.action, points) == (ids[1], "block", 0.0)
    monkeypatch.setattr(decisions, "noted", AsyncMock(return_value={ids[1]}))
    await screening.without_stopped(one, plan)
    assert len(kept) == 1
    asked = replace(plan, exchanges=(*exchanges[:1], replace(exchanges[1], reply=())))
    assert await screening.without_stopped(one, asked) == asked, "what is asked is refused instead"


BROUGHT: Any = ({"role": "assistant", "content": "That is bad."},)


JOINED = Exchange("1", "This is bad.\n\nAnd now?", questions=("This is bad.", "And now?"))


@pytest.mark.parametrize(
    ("plan", "confirmed", "said"),
    [
        (PromptPlan((Exchange("1", "Hi."),), system="Be bad."), "Be bad.", "instructions"),
        (
            PromptPlan((Exchange("1", "q", BROUGHT, unjudged=BROUGHT), Exchange("2", "Hi."))),
            "That is bad.",
            "Something earlier",
        ),
        (PromptPlan((JOINED,)), "This is bad.", "Your message"),
    ],
)
async def test_its_author_is_asked_once_wherever_it_stands(
    judging: asyncio.Event, kept: Kept, plan: PromptPlan, confirmed: str, said: str
) -> None:
    judging.set()
    one = screen({"input": {"illicit": {"ask": 0.5}}})
    user = one.request.user

    async def asked(**fields: Any) -> Refused | None:
        again = Screen(replace(one.request, plan=plan, **fields), one.chosen)
        texts = AnswerState(again.request, again).asked_texts()
        return await again.decide("input", await again.judge("input", texts))

    refused = await asked(confirmed_texts=frozenset({text_hash(user, "Hi.")}))
    assert refused is not None
    assert (refused.code, said in refused.message) == ("confirmation_needed", True)
    ((decision, _),) = kept
    assert text_hash(user, confirmed) in decision.text_hashes
    assert await asked(confirmed_texts=frozenset({text_hash(user, confirmed)})) is None
    assert await asked(confirmed=("input",)) is None


def test_a_joined_question_knows_what_it_was_joined_of() -> None:
    said = [("user", "complete", "A"), ("assistant", "failed", ""), ("user", "complete", "B")]
    path = [Message(role=role, status=status, text=text) for role, status, text in said]
    (exchange,) = history.exchanges_of([*path, Message(role="user", status="complete", text="C")])
    assert (exchange.question, exchange.questions) == ("A\n\nB\n\nC", ("A", "B", "C"))
