"""Screens of policies that a test has written, and answers to be shown through them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest

from chat import (
    decisions,
    moderating,
)
from chat.asking import AnswerRequest
from chat.events import (
    Delta,
    Event,
    Finished,
    Phase,
    Started,
)
from chat.policies_in_force import Chosen, InForce
from chat.screen import Screen
from inference import EngineError
from moderation.categories import CATEGORIES
from moderation.classifiers.screener import Report, Screening
from moderation.policies import parsed


class Kept(list[Any]):
    """In place of the rows: what would have been written."""

    async def keep(self, decision: Any, points: float = 0.0) -> None:
        self.append((decision, points))

    def keep_soon(self, make: Callable[[], Any]) -> None:
        self.append((make(), 0.0))


def screen(content: dict[str, Any], trial: dict[str, Any] | None = None) -> Screen:
    # Each text of a test is another user's: what was judged is known for a while.
    request = AnswerRequest("run", "m", [], user=str(uuid4().int % 2**31), source="chat")
    trials = (in_force(trial, is_dry_run=True),) if trial is not None else ()
    return Screen(request, Chosen(in_force(content), trials))


def in_force(content: dict[str, Any], *, is_dry_run: bool = False) -> InForce:
    return InForce(
        id=uuid4(),
        name="House rules",
        version=3,
        policy=parsed(content),
        is_dry_run=is_dry_run,
        tiers=frozenset(),
        groups=frozenset(),
        model_names=("*",),
        key_prefixes=frozenset(),
    )


async def an_answer(*texts: str) -> AsyncGenerator[Event, None]:
    yield Phase("queued", position=1)
    yield Started("m", "", 1)
    offset = 0
    for text in texts:
        yield Delta(text, offset, ids=(offset,))
        offset += len(text)
    yield Finished("stop")


BLOCKED = {"input": {"illicit": {"block": 0.5}}}


KEY = "AKIAIOSFODNN7EXAMPLE"


def said_in(events: Sequence[Event], part: str) -> str:
    return "".join(one.text for one in events if isinstance(one, Delta) and one.part == part)


def judge_by(
    monkeypatch: pytest.MonkeyPatch,
    score: Callable[[str], dict[str, float]],
    may_go_on: asyncio.Event | None = None,
) -> None:
    """Texts are judged by this function alone, once they may be."""

    async def judge(texts: Sequence[str], caller: Any) -> Screening:
        if may_go_on is not None:
            await may_go_on.wait()
        scores = tuple(dict.fromkeys(CATEGORIES, 0.0) | score(text) for text in texts)
        return Screening(scores, (Report("words", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", judge)


def by_rules(text: str) -> dict[str, float]:
    """As the built-in rules judge it."""
    [scores] = moderating.rules().scores([text])
    return scores


def keep_in(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Nothing is written down but here."""
    kept = Kept()
    monkeypatch.setattr(decisions, "keep", kept.keep)
    monkeypatch.setattr(decisions, "keep_soon", kept.keep_soon)
    for name, nothing in (("overturned", {}), ("noted", set())):
        monkeypatch.setattr(decisions, name, AsyncMock(return_value=nothing))
    return kept


async def nobody(texts: Sequence[str], caller: Any) -> Screening:
    """Who judges has died."""
    nothing = tuple(dict.fromkeys(CATEGORIES, 0.0) for _ in texts)
    return Screening(nothing, (Report("heads", 1.0, error=EngineError("it has died")),))
