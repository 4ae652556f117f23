"""answer() over several engine turns: call, result, words; its end; and taken up in between.

The engine's place is taken by a script, so that a test can have the model write what it needs.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chat.answer_state import MAX_TURNS
from chat.asking import AnswerRequest, Control
from chat.events import (
    Delta,
    Event,
    Finished,
    LogEvent,
    Phase,
    RunUsage,
    Started,
    ToolCall,
    ToolResult,
)
from chat.orchestrator import answer
from chat.tools import BUILT_IN, Tool
from inference import BUILTIN, ChatTokenizer, GenerateRequest, Timings, Tokens, Update, Usage
from inference import Finished as EngineFinished
from inference.builtin import MODEL_DIR
from inference.defaults import SamplingDefaults

CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}}\n</tool_call>'


class ScriptedEngine:
    """Writes the given texts, one for each turn; the last one for ever."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.prompts: list[str] = []
        self._tokenizer = ChatTokenizer.load(MODEL_DIR)

    async def tokenizer(self, model: str) -> ChatTokenizer:
        return self._tokenizer

    def is_upstream(self, model: str) -> bool:
        return False

    def context_tokens(self, model: str) -> int:
        return 100_000

    def sampling_defaults(self, model: str) -> SamplingDefaults:
        return SamplingDefaults()

    def revision(self, model: str) -> str:
        return "r1"

    def abort(self, model: str, request_id: str) -> None:
        raise AssertionError("nobody stops here")

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        assert (request.user, request.cache_salt, request.weight) == ("alice", "alice", 4.0)
        self.prompts.append(self._tokenizer.decode(list(request.prompt_ids)))
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        yield Tokens(text, tuple(self._tokenizer.encode(text)), 1)
        yield EngineFinished("stop", Usage(10, 0, 5), Timings())


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def use(*texts: str) -> ScriptedEngine:
        scripted = ScriptedEngine(*texts)
        for module in ("chat.engine_turn", "chat.orchestrator", "chat.asking"):
            monkeypatch.setattr(f"{module}.engine", lambda: scripted)
        return scripted

    return use


BEFORE = RunUsage(10, 0, 7)
"""What turns had taken that were over when the answer was interrupted."""


def _request(events: tuple[LogEvent, ...] = ()) -> AnswerRequest:
    return AnswerRequest(
        run_id="r",
        model=BUILTIN,
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is 6 * 7?"},
        ],
        user="alice",
        weight=4.0,
        tools=tuple(BUILT_IN.values()),
        events=events,
        usage=BEFORE if events else RunUsage(),
    )


async def _events(request: AnswerRequest) -> list[Event]:
    return [event async for event in answer(request)]


def _kinds(events: list[Event]) -> list[type]:
    kept = [e for e in events if not isinstance(e, Delta) or e.text]
    return [type(e) for e in kept if isinstance(e, LogEvent)]


async def test_a_call_its_result_and_words(script: Any) -> None:
    engine = script(CALL, "It is 42.")
    events = await _events(_request())
    assert _kinds(events) == [Started, ToolCall, ToolResult, Started, Delta, Finished]
    (result,) = [e for e in events if isinstance(e, ToolResult)]
    assert (result.content, result.is_error) == ("42", False)
    assert "42" in engine.prompts[1].rsplit("tool_response", 2)[1]
    end = events[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.completion_tokens) == ("stop", 10)


async def test_a_model_that_always_calls_comes_to_an_end(script: Any) -> None:
    engine = script(CALL)
    events = await _events(_request())
    assert len(engine.prompts) == MAX_TURNS
    assert "calculator" in engine.prompts[0]
    assert '"name": "calculator", "description"' not in engine.prompts[-1], "offered no more"
    assert isinstance(events[-1], Finished)
    assert _kinds(events).count(ToolResult) == MAX_TURNS - 1
    assert _kinds(events)[-3:] == [Started, Delta, Finished], "a call that nobody runs is text"


@pytest.mark.parametrize("text", [CALL, f"Let me see.\n{CALL}"])
async def test_a_call_where_no_tool_is_offered_is_text(script: Any, text: str) -> None:
    script(text)
    events = await _events(replace(_request(), tools=()))
    assert _kinds(events) == [Started, Delta, Finished]
    assert "".join(e.text for e in events if isinstance(e, Delta)) == text
    end = events[-1]
    assert isinstance(end, Finished)
    assert end.reason == "stop"


@pytest.mark.parametrize("num_kept", range(1, 4))
async def test_taken_up_anywhere_it_ends_as_it_would_have(script: Any, num_kept: int) -> None:
    """Killed after the start, after the call, after the result: no call runs without an answer."""
    script(CALL, "It is 42.")
    whole = [e for e in await _events(_request()) if isinstance(e, LogEvent)]
    logged = [e for e in whole if not isinstance(e, Delta)][:num_kept]
    script(*([CALL] if num_kept == 1 else []), "It is 42.")
    rest = await _events(_request(tuple(logged)))
    kinds = [type(e) for e in logged] + _kinds(rest)
    end = rest[-1]
    assert isinstance(end, Finished)
    assert end.usage.completion_tokens == (10 if num_kept == 1 else 5) + BEFORE.completion_tokens
    # A turn of which nothing is known but its start begins again.
    kinds = kinds[1:] if kinds[:2] == [Started, Started] else kinds
    assert kinds == [Started, ToolCall, ToolResult, Started, Delta, Finished]


class _Mail:
    """A tool with effects, and what it has done."""

    def __init__(self, **options: Any) -> None:
        self.num_sent = 0
        schema = {"type": "object", "properties": {}}
        self.tool = Tool("calculator", "Send a mail.", schema, self._send, **options)

    async def _send(self, _: dict[str, Any]) -> str:
        self.num_sent += 1
        return "sent"

    def request(self, events: tuple[LogEvent, ...] = ()) -> AnswerRequest:
        return replace(_request(events), tools=(self.tool,), source="chat")


async def _decided(request: AnswerRequest, *, is_allowed: bool) -> list[Event]:
    control, found = Control(), []
    async for event in answer(request, control):
        found.append(event)
        if isinstance(event, Phase) and event.phase == "approval":
            control.decide(event.detail, is_allowed)
    return found


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_some_tools_ask_each_time(script: Any, is_allowed: bool) -> None:
    script(CALL, "Done.")
    mail = _Mail(always_asks=True)
    events = await _decided(mail.request(), is_allowed=is_allowed)
    assert any(isinstance(one, Phase) and one.phase == "approval" for one in events)
    assert mail.num_sent == int(is_allowed)


async def test_others_ask_when_words_of_others_are_there(script: Any) -> None:
    """The first result is such words."""
    script(CALL, CALL, "Done.")
    mail = _Mail()
    events = await _decided(mail.request(), is_allowed=False)
    asked = [one for one in events if isinstance(one, Phase) and one.phase == "approval"]
    assert (mail.num_sent, len(asked)) == (1, 1)


@pytest.mark.parametrize("asks", [True, False])
async def test_an_interrupted_call_with_effects_is_not_done_again(script: Any, asks: bool) -> None:
    """It may have been done before the process died, with a yes or without being asked."""
    engine = script("I don't know whether it was sent.")
    mail, call = _Mail(always_asks=asks), ToolCall("c1", "calculator", "{}")
    request = mail.request((Started(BUILTIN, "r1", 1), call))
    control = Control()
    if asks:
        control.decide("c1", True)
    events = [event async for event in answer(request, control)]
    (result,) = [one for one in events if isinstance(one, ToolResult)]
    assert (mail.num_sent, result.is_error) == (0, True)
    assert "interrupted" in engine.prompts[0]


async def test_one_that_nobody_had_allowed_is_asked_about_again(script: Any) -> None:
    script("Sent.")
    mail, call = _Mail(always_asks=True), ToolCall("c1", "calculator", "{}")
    await _decided(mail.request((Started(BUILTIN, "r1", 1), call)), is_allowed=True)
    assert mail.num_sent == 1
