"""What follows from verdicts, and what where no verdict can be had."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest

from chat import (
    answer_cache,
    answer_documents,
    moderating,
    orchestrator,
    screening,
)
from chat.answer_state import AnswerState
from chat.events import (
    Delta,
    Event,
    Failed,
    Finished,
    Found,
    Phase,
    Refused,
    Started,
    ToolCall,
)
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import Screen
from chat.spans import Clock, Span
from inference import EngineError
from moderation.categories import CATEGORIES
from moderation.classifiers.screener import Report, Screening
from retrieval.excerpts import Excerpt
from tests.chat.screens import BLOCKED, Kept, an_answer, screen


async def test_nothing_but_waiting_is_shown_before_the_verdict(
    judging: asyncio.Event, kept: Kept
) -> None:
    events = screening.screened(screen(BLOCKED), ["fine"], lambda: an_answer("Yes"), Clock())
    assert isinstance(await anext(events), Phase)
    following = asyncio.create_task(anext(events))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not following.done()
    judging.set()
    rest = [await following, *[event async for event in events]]
    kinds = [type(event).__name__ for event in rest]
    assert kinds == ["Span", "Started", "Delta", "Finished"]


async def test_a_refusal_ends_what_has_begun(judging: asyncio.Event, kept: Kept) -> None:
    has_ended = asyncio.Event()

    async def endless() -> AsyncGenerator[Event, None]:
        try:
            yield Started("m", "", 1)
            await asyncio.Event().wait()
        finally:
            has_ended.set()

    judging.set()
    seen = [e async for e in screening.screened(screen(BLOCKED), ["bad"], endless, Clock())]
    assert isinstance(seen[-1], Refused)
    assert not any(isinstance(event, Started) for event in seen)
    assert has_ended.is_set()
    ((decision, _),) = kept
    assert (decision.action, decision.text, decision.policy_version) == ("block", "bad", 3)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(("action", "is_refused"), [("block", True), ("allow", False)])
async def test_where_nobody_can_judge_the_policy_says_what_follows(
    kept: Kept, action: str, is_refused: bool
) -> None:
    policy = {**BLOCKED, "on_failure": {"input": action}}
    answer = lambda: an_answer("Yes")  # noqa: E731
    seen = [e async for e in screening.screened(screen(policy), ["hello"], answer, Clock())]
    assert isinstance(seen[-1], Refused) is is_refused
    if isinstance(seen[-1], Refused):
        assert seen[-1].code == "moderation_unavailable"
    ((decision, _),) = kept
    assert decision.failed == [{"classifier": "heads", "reason": "it has died"}]


async def test_what_is_known_counts_while_nobody_can_be_asked(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging.set()
    one = screen({**BLOCKED, "on_failure": {"input": "allow"}})
    await one.judge("input", ["This is bad."])

    async def away(texts: Sequence[str], caller: Any) -> Screening:
        nothing = tuple(dict.fromkeys(CATEGORIES, 0.0) for _ in texts)
        return Screening(nothing, (Report("heads", 1.0, error=EngineError("it has died")),))

    monkeypatch.setattr(moderating, "screen", away)
    outcome = await one.judge("input", ["Something new.", "This is bad."])
    assert (outcome.stop, outcome.worst_text) == ("block", "This is bad.")
    assert outcome.failed
    assert (await one.judge("input", ["Something new."])).stop is None


@pytest.mark.parametrize("action", ["allow", "block"])
async def test_the_trace_tells_of_an_answer_that_nobody_could_judge(
    broken: None, kept: Kept, action: str
) -> None:
    policy = {"output": {"illicit": {"block": 0.5}}, "on_failure": {"output": action}}
    answer = lambda: an_answer("One. ", "Two. ")  # noqa: E731
    seen = [e async for e in screening.screened(screen(policy), [], answer, Clock())]
    (span,) = [event for event in seen if isinstance(event, Span)]
    assert span.kind == "moderation"
    told = [span.facts[name] for name in ("stage", "action", "has_failed")]
    assert told == ["output", action, True]
    assert seen.index(span) < len(seen) - 1
    assert isinstance(seen[-1], Refused if action == "block" else Finished)


async def test_a_client_that_leaves_leaves_nothing_running(
    judging: asyncio.Event, kept: Kept
) -> None:
    before = asyncio.all_tasks()
    events = screening.screened(screen(BLOCKED), ["fine"], lambda: an_answer("Yes"), Clock())
    await anext(events)
    following = asyncio.create_task(anext(events))
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await events.aclose()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_dry_run_does_nothing_but_tell(judging: asyncio.Event, kept: Kept) -> None:
    judging.set()
    trying = screen({}, trial=BLOCKED)
    answer = lambda: an_answer("Yes")  # noqa: E731
    seen = [e async for e in screening.screened(trying, ["bad"], answer, Clock())]
    assert isinstance(seen[-1], Finished)
    await screening.noted()
    ((decision, points),) = kept
    assert (decision.is_dry_run, decision.action, decision.text, points) == (True, "block", "", 0)


async def test_nobody_waits_for_a_dry_run(judging: asyncio.Event, kept: Kept) -> None:
    trial = {stage: {"illicit": {"block": 0.5}} for stage in ("input", "output", "tools")}
    trying = screen({}, trial=trial)
    async with asyncio.timeout(5):
        answer = lambda: an_answer("A bad answer")  # noqa: E731
        seen = [e async for e in screening.screened(trying, ["bad"], answer, Clock())]
        assert await screening.fit_to_read(trying, "tools", "a bad result") == "a bad result"
    assert isinstance(seen[-1], Finished)
    judging.set()
    await screening.noted()
    assert sorted(decision.stage for decision, _ in kept) == ["input", "output", "tools"]


@pytest.mark.usefixtures("broken")
async def test_a_dry_run_tells_what_a_failure_would_have_led_to(kept: Kept) -> None:
    trying = screen({}, trial={**BLOCKED, "on_failure": {"input": "block"}})
    answer = lambda: an_answer("Yes")  # noqa: E731
    seen = [e async for e in screening.screened(trying, ["hello"], answer, Clock())]
    assert isinstance(seen[-1], Finished)
    await screening.noted()
    ((decision, _),) = kept
    assert (decision.action, decision.is_dry_run) == ("block", True)


async def test_a_dry_run_tells_what_could_have_been_done(
    judging: asyncio.Event, kept: Kept
) -> None:
    judging.set()
    trying = screen({}, trial={"input": {"illicit": {"redact": 0.5}}})
    await trying.decide("input", await trying.judge("input", ["bad"]))
    ((decision, _),) = kept
    assert decision.action == "block", "there is nothing that could be taken out"


@pytest.mark.parametrize("leaves_early", [False, True])
async def test_a_note_is_of_calls_too_and_of_what_was_read_before_its_reader_left(
    judging: asyncio.Event, kept: Kept, leaves_early: bool
) -> None:
    judging.set()

    async def calling() -> AsyncGenerator[Event, None]:
        yield Started("m", "", 1)
        yield Delta("I look.", 0)
        yield ToolCall("c1", "look", '{"for": "b\\u0061d things"}')
        yield Finished("tool_calls")

    one = screen({"output": {"illicit": {"review": 0.5}}})
    events = screening.screened(one, ["hi"], calling, Clock())
    async with aclosing(events):
        async for event in events:
            if leaves_early and isinstance(event, ToolCall):
                break
    await screening.noted()
    ((decision, _),) = kept
    assert (decision.action, decision.review) == ("review", "open")


async def test_a_classifier_that_is_away_is_asked_once_for_a_text(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def away(texts: Sequence[str], caller: Any) -> Screening:
        asked.extend(texts)
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        bad = tuple(nothing | {"illicit": float("bad" in text)} for text in texts)
        error = EngineError("nobody answers")
        return Screening(bad, (Report("rules", 1.0, bad), Report("server", 1.0, error=error)))

    monkeypatch.setattr(moderating, "screen", away)
    reply: Any = ({"role": "assistant", "content": "Well."},)
    texts = ("Hello.", "This is bad.", "And now?")
    plan = PromptPlan(tuple(Exchange(str(uuid4()), text, reply) for text in texts))
    one = screen({**BLOCKED, "on_failure": {"input": "review"}})
    left = await screening.without_stopped(one, plan)
    assert [exchange.question for exchange in left.exchanges] == ["Hello.", "And now?"]
    outcome = await one.judge(
        "input", AnswerState(replace(one.request, plan=left), one).asked_texts()
    )
    assert (outcome.verdict.action, len(outcome.failed)) == ("review", 1)
    assert outcome.scores["illicit"] == 0.0
    again = await one.judge("input", ["Hello."])
    assert again.failed == outcome.failed
    assert sorted(asked) == sorted(texts)
    await Screen(one.request, one.chosen).judge("input", ["Hello."])
    assert len(asked) == 4, "another answer tries again"


async def test_who_has_to_wait_is_not_judged_before(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes of `judging`: it would be waited for."""
    waits = Failed("cooling_down", "You can go on later.", 60.0)
    plan = PromptPlan((Exchange("1", "Hello."), Exchange("2", "And now?")))
    one = screen(BLOCKED)
    one = Screen(replace(one.request, plan=plan), one.chosen)
    monkeypatch.setattr(orchestrator, "screen_of", AsyncMock(return_value=one))
    far = SimpleNamespace(is_upstream=lambda model: True)
    monkeypatch.setattr(orchestrator, "engine", lambda: far)
    for module in (orchestrator, screening):
        monkeypatch.setattr(module, "must_wait", AsyncMock(return_value=waits))
    async with asyncio.timeout(5):
        assert [event async for event in orchestrator.answer(one.request)] == [waits]


@pytest.mark.parametrize(
    ("fields", "is_read"),
    [({"name": "bad.pdf"}, False), ({"context": "A bad head"}, False), ({"context": "Head"}, True)],
)
async def test_names_and_headings_of_documents_are_judged_as_well(
    judging: asyncio.Event,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, str],
    is_read: bool,
) -> None:
    judging.set()
    values = {"number": 1, "document": "d", "version": "v", "collection": "c", "name": "a.txt"}
    excerpt = Excerpt(*values.values(), 0, 1)  # type: ignore[arg-type]
    found = Found("what", (replace(excerpt, **fields).to_json(),))

    async def texts(excerpts: Sequence[Excerpt]) -> list[str]:
        return ["Harmless."]

    monkeypatch.setattr(answer_documents, "in_db", lambda _: texts)
    one = screen({"documents": {"illicit": {"block": 0.5}}})
    fit = await answer_documents._fit_excerpts(AnswerState(one.request, one), found)
    assert len(fit.excerpts) == is_read


@pytest.mark.parametrize(("text", "is_kept"), [("All is well.", True), ("This is bad.", False)])
async def test_what_a_policy_stops_is_given_to_nobody_again(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch, text: str, is_kept: bool
) -> None:
    judging.set()
    cached: list[str] = []

    async def keep(asked: Any, text: str, *rest: Any) -> None:
        cached.append(text)

    monkeypatch.setattr(answer_cache, "keep", keep)
    one = screen({"output": {"illicit": {"block": 0.5}}})
    asked: Any = None
    await orchestrator._keep(AnswerState(one.request, one), asked, [Delta(text, 0)])
    assert cached == [text] * is_kept
