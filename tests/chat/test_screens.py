"""What follows from verdicts, and what where no verdict can be had."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import answer_cache, decisions, history, moderating, orchestrator, screening, summaries
from chat.answer_state import AnswerState
from chat.asking import AnswerRequest
from chat.events import (
    TERMINAL,
    Delta,
    Event,
    Failed,
    Finished,
    Found,
    LeftOut,
    Phase,
    Refused,
    Started,
    Stopped,
    TerminalEvent,
    ToolCall,
    ToolResult,
)
from chat.models import Conversation, Generation, Message
from chat.policies_in_force import Chosen, InForce
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import MAX_KEPT_CHARS, Screen
from chat.spans import Clock, Span
from chat.storable import is_storable
from inference import EngineError
from moderation.categories import CATEGORIES
from moderation.classifiers.screener import Report, Screening
from moderation.policies import parsed
from moderation.text_hashes import text_hash
from retrieval.excerpts import Excerpt
from tests.chat.test_obedient_model import ObedientEngine, Outbox, heard, request, use


class Kept(list[Any]):
    """In place of the rows: what would have been written."""

    async def keep(self, decision: Any, points: float = 0.0) -> None:
        self.append((decision, points))

    def keep_soon(self, decision: Any) -> None:
        self.append((decision, 0.0))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    kept = Kept()
    monkeypatch.setattr(decisions, "keep", kept.keep)
    monkeypatch.setattr(decisions, "keep_soon", kept.keep_soon)
    for name, nothing in (("overturned", {}), ("noted", set())):
        monkeypatch.setattr(decisions, name, AsyncMock(return_value=nothing))
    return kept


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Texts with "bad" in them are illicit; told once this is set."""
    may_go_on = asyncio.Event()

    async def screen(texts: Sequence[str], caller: Any) -> Screening:
        await may_go_on.wait()
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        found = (nothing | {"illicit": 1.0 if "bad" in text else 0.0} for text in texts)
        scores = tuple(found)
        return Screening(scores, (Report("words", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", screen)
    return may_go_on


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def screen(texts: Sequence[str], caller: Any) -> Screening:
        nothing = tuple(dict.fromkeys(CATEGORIES, 0.0) for _ in texts)
        return Screening(nothing, (Report("heads", 1.0, error=EngineError("it has died")),))

    monkeypatch.setattr(moderating, "screen", screen)


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


async def test_what_no_rule_has_matched_cannot_be_redacted(
    judging: asyncio.Event, kept: Kept
) -> None:
    judging.set()
    outcome = await screen({"input": {"illicit": {"redact": 0.5}}}).judge("input", ["bad"])
    assert outcome.verdict.action == "block"


KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def ruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in rules alone."""

    async def screen(texts: Sequence[str], caller: Any) -> Screening:
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        scores = tuple(nothing | one for one in moderating.rules().scores(texts))
        return Screening(scores, (Report("rules", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", screen)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (f"The key is {KEY}.", "redact"),
        (" ".join(KEY), "block"),
        (f"The key is {KEY}. Or {' '.join(KEY)}", "block"),
    ],
)
async def test_what_is_in_disguise_cannot_be_redacted(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, text: str, action: str
) -> None:
    async def scored(texts: Sequence[str], caller: Any) -> Screening:
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        scores = tuple({**nothing, **moderating.found_by_rules(one)} for one in texts)
        return Screening(scores, (Report("rules", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", scored)
    outcome = await screen({"input": {"secrets": {"redact": 0.5}}}).judge("input", [text])
    assert outcome.verdict.action == action


@pytest.mark.usefixtures("ruled")
async def test_the_stricter_threshold_counts_before_anything_is_taken_out(kept: Kept) -> None:
    one = screen({"input": {"secrets": {"redact": 0.5, "block": 0.9}}})
    outcome = await one.judge("input", [f"The key is {KEY}."])
    assert outcome.verdict.action == "block"


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


@pytest.mark.parametrize("action", ["note", "redact", "block"])
async def test_no_rule_reads_a_long_text_where_everybody_waits(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """Of letters that have to be looked at one by one it takes a tenth of a second for each look."""
    judging.set()
    rules, readers = moderating.rules(), list[str]()

    def find(text: str) -> Any:
        if len(text) > MAX_KEPT_CHARS:
            readers.append(threading.current_thread().name)
        return rules.find(text)

    monkeypatch.setattr(moderating, "rules", lambda: SimpleNamespace(find=find))
    one = screen({"input": {"illicit": {action: 0.5}}})
    text = "Das ist bad für die Möhren. " * 5_000
    await one.decide("input", await one.judge("input", [text]))
    request = replace(one.request, messages=[{"role": "user", "content": text}])
    async with aclosing(orchestrator.answer(request)) as events:
        monkeypatch.setattr(orchestrator, "screen_of", AsyncMock(return_value=one))
        await anext(events)
    assert bool(readers) == (action == "redact")
    assert all(name.startswith("off-loop") for name in readers)


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


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in rules, and hate in texts with "hateful"."""

    async def screen(texts: Sequence[str], caller: Any) -> Screening:
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        pairs = zip(texts, moderating.rules().scores(texts), strict=True)
        scores = tuple(nothing | one | {"hate": float("hateful" in t)} for t, one in pairs)
        return Screening(scores, (Report("rules", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", screen)


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


def test_a_secret_of_a_document_is_in_no_later_prompt_either() -> None:
    one = screen({"documents": {"secrets": {"redact": 0.5}}})
    found = Exchange("1", "What is the key?", documents=f"[1] keys.txt\n{KEY}")
    plan = PromptPlan((found, Exchange("2", "Say it again.")))
    state = AnswerState(replace(one.request, plan=plan), one)
    state.redact()
    (content,) = [m["content"] for m in state.messages if "What is the key?" in m["content"]]
    assert KEY not in content
    assert "[1] keys.txt\n[█" in content


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


@pytest.mark.usefixtures("ruled")
async def test_what_is_said_again_is_not_looked_through_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Mock(side_effect=moderating.found_by_rules)
    monkeypatch.setattr(moderating, "found_by_rules", looked)
    monkeypatch.setattr(moderating, "_stamp", 1_000_000)
    one = screen({"input": {"secrets": {"redact": 0.5}}})
    texts = [f"The key is {KEY}.", f"It is {KEY}."]
    for asked in (texts[:1], texts, texts):
        assert (await Screen(one.request, one.chosen).judge("input", asked)).redacts
    assert looked.call_count == 2
    monkeypatch.setattr(moderating, "_stamp", 1_000_001)
    await one.judge("input", texts)
    assert looked.call_count == 4, "there are other rules"
    await screen({"input": {"secrets": {"redact": 0.5}}}).judge("input", texts)
    assert looked.call_count == 6, "of somebody else nothing is known"


def test_a_private_key_is_taken_out_with_all_of_its_lines() -> None:
    body = "\n".join(["MIIEpAIBAAKCAQEA7bq0" * 3] * 20)
    text = f"Here:\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nDone."
    redacted = screen({"input": {"secrets": {"redact": 0.5}}}).redacted("input", text)
    assert "MIIE" not in redacted
    assert redacted.startswith("Here:\n")
    assert redacted.endswith("\nDone.")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("4111 1111 1111 1111 12/27 123", "[████████] 12/27 123"),
        ("ES9121000418450200051332 bitte", "[████████] bitte"),
    ],
)
def test_what_stands_beside_a_number_keeps_it_from_no_redaction(text: str, redacted: str) -> None:
    one = screen({"input": {"personal_data": {"redact": 0.5}}})
    assert one.redacted("input", text) == redacted


@pytest.mark.usefixtures("ruled")
@pytest.mark.parametrize("size", [7, 64, 333])
async def test_a_private_key_is_taken_out_of_an_answer_to_its_end(kept: Kept, size: int) -> None:
    """It has no sentence that it could wait for, and more lines than what is held back."""
    lines = [f"MII{number:03}EpAIBAAKCAQEA7bq0" * 3 for number in range(60)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    text = f"Here it is.\n{key}\n\nKeep it safe. Bye."
    one = screen({"output": {"secrets": {"redact": 0.5}}})
    answer = lambda: an_answer(*(text[at : at + size] for at in range(0, len(text), size)))  # noqa: E731
    seen = [event async for event in screening.screened(one, ["hi"], answer, Clock())]
    shown = said_in(seen, "text")
    assert "MII" not in shown
    assert shown.startswith("Here it is.\n[█")
    assert shown.endswith("\n\nKeep it safe. Bye.")


SENTENCES = st.text(alphabet="ab .!", max_size=30).filter(bool)
PIECES = st.tuples(st.sampled_from(["text", "reasoning", "call"]), SENTENCES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    updates=st.lists(st.lists(PIECES, max_size=4), min_size=1, max_size=8),
    end=st.sampled_from([Finished("stop"), Stopped(0), Failed("engine_died", "It has died.")]),
)
async def test_an_update_of_the_engine_is_shown_as_a_whole(
    judging: asyncio.Event, kept: Kept, updates: list[list[tuple[str, str]]], end: TerminalEvent
) -> None:
    """An answer that is cut anywhere goes on behind the ids that were shown: all that they stand for
    has to be there. So has it where somebody branches from one of them."""
    judging.set()
    given = [told(number, said) for number, said in enumerate(updates)]

    async def answer() -> AsyncGenerator[Event, None]:
        for events in given:
            for event in events:
                yield event
            yield Phase("decode")
        is_stop = isinstance(end, Stopped)
        yield Stopped(sum(len(said_in(events, "text")) for events in given)) if is_stop else end

    shown: list[Event] = []
    policy = {"output": {"illicit": {"block": 0.5}}}
    async for event in screening.screened(screen(policy), [], answer, Clock()):
        shown.append(event)
        if not isinstance(event, (Phase, *TERMINAL)):
            continue
        ids = {id_ for one in shown if isinstance(one, Delta) for id_ in one.ids}
        whole = [events for number, events in enumerate(given) if number in ids]
        for part in ("text", "reasoning"):
            assert said_in(shown, part) == "".join(said_in(events, part) for events in whole)
        calls = [one for one in shown if isinstance(one, ToolCall)]
        assert calls == [one for events in whole for one in events if isinstance(one, ToolCall)]
    if isinstance(end, Finished):
        assert ids == set(range(len(updates)))
    if isinstance(event, Stopped):
        assert event.chars == len(said_in(shown, "text"))


def told(number: int, said: list[tuple[str, str]]) -> list[Event]:
    """As a turn tells an update with one id: it is the first delta's."""
    ids: tuple[int, ...] = (number,)
    events: list[Event] = []
    if not said or said[0][0] == "call":
        events, ids = [Delta("", 0, ids=ids)], ()
    for kind, text in said:
        if kind == "call":
            events.append(ToolCall(f"{number}", "look", text))
        else:
            events.append(Delta(text, 0, kind, ids))  # type: ignore[arg-type]
            ids = ()
    return events


def said_in(events: Sequence[Event], part: str) -> str:
    return "".join(one.text for one in events if isinstance(one, Delta) and one.part == part)


@pytest.mark.usefixtures("ruled")
async def test_what_a_policy_takes_out_is_not_kept_for_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[str] = []

    async def keep(asked: Any, text: str, *rest: Any) -> None:
        cached.append(text)

    monkeypatch.setattr(answer_cache, "keep", keep)
    one = screen({"output": {"secrets": {"redact": 0.5}}})
    asked: Any = None
    await orchestrator._keep(AnswerState(one.request, one), asked, [Delta(f"It is {KEY}.", 0)])
    assert not cached


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

    monkeypatch.setattr(orchestrator, "in_db", lambda _: texts)
    one = screen({"documents": {"illicit": {"block": 0.5}}})
    fit = await orchestrator._fit_excerpts(AnswerState(one.request, one), found)
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
