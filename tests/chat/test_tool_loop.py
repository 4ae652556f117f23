"""answer() over several engine turns: call, result, words; its end; and taken up in between.

The engine's place is taken by a script, so that a test can have the model write what it needs.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chat.asking import AnswerRequest
from chat.events import Delta, Event, Finished, LogEvent, RunUsage, Started, ToolCall, ToolResult
from chat.orchestrator import answer
from chat.tools import BUILT_IN
from chat.turn import MAX_TURNS
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

    def state(self, model: str) -> Any:
        return SimpleNamespace(revision="r1")

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
