"""What a policy stops crosses no line to a reader, however our own engine cuts its answer.

Not as text or call, not by the tokens' likelihoods, and not by the ids that others go on behind.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import decisions, moderating
from chat import screen as screens
from chat.asking import AnswerRequest, Control, Sampling
from chat.events import TERMINAL, Delta, Event, Finished, Refused, RunUsage, Stopped, ToolCall
from chat.orchestrator import answer
from chat.policies_in_force import Chosen
from chat.raw_text import RawRequest, RawText
from inference import (
    BUILTIN,
    Asked,
    ChatRequest,
    GenerateRequest,
    Said,
    Text,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    UpstreamUpdate,
    Usage,
)
from inference import Finished as EngineFinished
from moderation.categories import CATEGORIES
from moderation.classifiers.screener import Report, Screening
from tests.chat.screens import in_force
from tests.chat.test_obedient_model import ObedientEngine

PHRASE = "crimson heron"
CALL = json.dumps({"name": "look", "arguments": {"where": f"at the {PHRASE}", "how": "quietly"}})
ESCAPED = CALL.replace("crim", "\\u0063rim")
ANSWERS = {
    "prose": f"It was a quiet day. Then came the {PHRASE} of the lake. Everybody went home.",
    "at once": f"{PHRASE}!",
    "no sentences": f"{'word ' * 90}{PHRASE} {'word ' * 20}",
    "json": json.dumps({"a": ["All is well.", f"the {PHRASE}"], "b": 1}),
    "a call": f"I look.\n<tool_call>\n{CALL}\n</tool_call>",
    "an escaped call": f"<tool_call>\n{ESCAPED}\n</tool_call>",
}


class ScriptedEngine(ObedientEngine):
    """Writes a text in updates of so many tokens each, with their likelihoods."""

    def __init__(self, text: str, sizes: Sequence[int]) -> None:
        super().__init__()
        self.ids = self.tokenizer_.encode(text)
        self.sizes = sizes
        self.control: Control | None = None
        self.stops_behind = len(self.ids)

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        at, number = 0, 0
        while at < len(self.ids):
            size = self.sizes[number % len(self.sizes)]
            ids = tuple(self.ids[at : at + size])
            at, number = at + size, number + 1
            text = self.tokenizer_.decode(list(ids))
            rated = tuple(TokenLogprob(id_, -0.1, ((id_, -0.1),)) for id_ in ids)
            yield Tokens(text, ids, at, logprobs=rated)
            await asyncio.sleep(0)
            if at >= self.stops_behind and self.control is not None:
                self.control.stop()
                yield EngineFinished("abort", Usage(10, 0, at), Timings())
                return
        yield EngineFinished("stop", Usage(10, 0, at), Timings())


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The phrase is blocked; nothing is written down."""

    async def screen(texts: Sequence[str], caller: Any) -> Screening:
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        scores = tuple(nothing | {"illicit": float(PHRASE in text)} for text in texts)
        return Screening(scores, (Report("words", 1.0, scores),))

    async def keep(*_: Any) -> None:
        pass

    async def chosen_for(*_: Any) -> Chosen:
        return Chosen(in_force({"output": {"illicit": {"block": 0.5}}}))

    monkeypatch.setattr(moderating, "screen", screen)
    monkeypatch.setattr(decisions, "keep", keep)
    monkeypatch.setattr(screens, "chosen_for", chosen_for)


def use(monkeypatch: pytest.MonkeyPatch, engine: ScriptedEngine) -> None:
    for module in ("engine_turn", "orchestrator", "asking", "raw_text"):
        monkeypatch.setattr(f"chat.{module}.engine", lambda: engine)


def crossed(engine: ScriptedEngine, events: Sequence[Event]) -> list[str]:
    """All that a reader could put together of what was shown."""
    deltas = [event for event in events if isinstance(event, Delta)]
    rated = [one.token_id for delta in deltas for one in delta.logprobs]
    decoded = engine.tokenizer_.decode
    return [
        "".join(delta.text for delta in deltas),
        decoded([id_ for delta in deltas for id_ in delta.ids]),
        decoded(rated),
        *(json.dumps(json.loads(e.arguments)) for e in events if isinstance(e, ToolCall)),
    ]


def asking(**fields: Any) -> AnswerRequest:
    return AnswerRequest(
        run_id="r",
        model=BUILTIN,
        messages=[{"role": "user", "content": "Go on."}],
        user=str(uuid4().int % 2**31),
        sampling=Sampling(num_logprobs=1),
        **fields,
    )


SCHEMA = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)
property_of = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("source", ["chat", "api"])
@pytest.mark.parametrize("kind", ANSWERS)
@property_of
@given(sizes=SIZES)
async def test_a_planted_phrase_crosses_no_line(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: Any, sizes: list[int]
) -> None:
    engine = ScriptedEngine(ANSWERS[kind], sizes)
    use(monkeypatch, engine)
    events = [one async for one in answer(asking(source=source, tool_schemas=(SCHEMA,)))]
    assert not [text for text in crossed(engine, events) if PHRASE in text]
    end = events[-1]
    assert isinstance(end, Refused) or (
        isinstance(end, Finished) and end.reason == "content_filter"
    )


class FarEngine(ObedientEngine):
    """Has another server say three sentences, which tells of no tokens before its end."""

    def is_upstream(self, model: str) -> bool:
        return True

    def upstream_spec(self, model: str) -> Any:
        return SimpleNamespace(has_tools=False, continues="", context_tokens=None)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[UpstreamUpdate, None]:
        yield Asked("far.example")
        for sentence in ("It was a quiet day. ", f"Then came the {PHRASE}. ", "All went home."):
            yield Said((Text(sentence),))
        yield EngineFinished("stop", Usage(10, 0, 30), Timings())


@pytest.mark.usefixtures("judged")
async def test_what_another_server_was_cut_short_at_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = FarEngine()
    for module in ("upstream_turn", "orchestrator", "asking"):
        monkeypatch.setattr(f"chat.{module}.engine", lambda: engine)
    end = [one async for one in answer(asking(source="api"))][-1]
    assert isinstance(end, Finished)
    assert end.reason == "content_filter"
    assert end.usage == RunUsage(len("Go on.") // 3, 0, len("It was a quiet day. ") // 3)


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("kind", ["prose", "at once", "no sentences", "json"])
@property_of
@given(sizes=SIZES)
async def test_nor_where_a_prompt_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, kind: str, sizes: list[int]
) -> None:
    engine = ScriptedEngine(ANSWERS[kind], sizes)
    use(monkeypatch, engine)
    of = asking()
    raw = RawText(RawRequest("r", BUILTIN, (1, 2), "Go", of.user, 1.0, of.sampling))
    events = [one async for one in raw.events()]
    assert not [text for text in crossed(engine, events) if PHRASE in text]
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "content_filter"


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("kind", ANSWERS)
@property_of
@given(sizes=SIZES, stops_behind=st.integers(1, 200))
async def test_nor_where_its_reader_stops_while_it_is_held_back(
    monkeypatch: pytest.MonkeyPatch, kind: str, sizes: list[int], stops_behind: int
) -> None:
    engine = ScriptedEngine(ANSWERS[kind], sizes)
    engine.control, engine.stops_behind = Control(), stops_behind
    use(monkeypatch, engine)
    request = replace(asking(source="chat"), tool_schemas=(SCHEMA,))
    events = [one async for one in answer(request, engine.control)]
    assert not [text for text in crossed(engine, events) if PHRASE in text]
    assert isinstance(events[-1], TERMINAL)
    if isinstance(events[-1], Stopped):
        shown = "".join(e.text for e in events if isinstance(e, Delta) and e.part == "text")
        assert events[-1].chars == len(shown)
