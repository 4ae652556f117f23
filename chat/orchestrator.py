"""answer(): one question in, a stream of events out. Knows no socket, no HTTP and no rows.

An answer is a loop of engine turns: the model writes, and where it calls tools and they are ours to
run, their results go into the next turn's prompt. The events of a turn carry its token ids, so that
an answer whose process died can be taken up in the middle of a word.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from chat import parts as message_parts
from chat import prompt
from chat.answer_state import AnswerState
from chat.asking import AnswerRequest, Control, TurnSoFar
from chat.engine import engine
from chat.engine_turn import EngineTurn
from chat.events import Delta, Event, Failed, LogEvent, Phase, Started, ToolCall, ToolResult
from chat.tools import Tool, run_tool
from chat.turn import MAX_TURNS, Turn
from chat.upstream_turn import UpstreamTurn
from inference import EngineError

_num_active = 0


async def answer(
    request: AnswerRequest, control: Control | None = None
) -> AsyncGenerator[Event, None]:
    """The events of one answer; the last is Finished, Stopped or Failed.

    Closing the iterator early aborts the engine's request. Engine errors become Failed.
    """
    global _num_active
    _num_active += 1
    try:
        async with aclosing(_turns(request, control or Control())) as events:
            async for event in events:
                yield event
    except EngineError as error:
        yield Failed(error.code, str(error), error.retry_after_s, error.param)
    finally:
        _num_active -= 1


def num_active() -> int:
    """How many answers are being written in this process, for whomever."""
    return _num_active


async def _turns(request: AnswerRequest, control: Control) -> AsyncGenerator[Event, None]:
    state = AnswerState(request)
    tools = {tool.name: tool for tool in request.tools}
    so_far, earlier, calls = _take_up(state)
    while True:
        if calls is None:
            turn = await _turn_of(state, control, so_far, earlier)
            async with aclosing(turn.events()) as events:
                async for event in events:
                    yield event
            if turn.end is None:
                return  # it failed, and has said so
            state.account(turn.end)
            if turn.end.reason == "abort" or control.is_stopped:
                yield state.stopped()
                return
            calls = turn.calls
            # In the last turn no tools were offered; a model that calls all the same is not heard.
            if not calls or not tools or state.turn_index >= MAX_TURNS - 1:
                yield state.finished("tool_calls" if calls and not tools else turn.end.reason)
                return
            _remember(state, turn.logged)
        async with aclosing(_run_tools(state, control, tools, calls)) as events:
            async for event in events:
                yield event
        if control.is_stopped:
            yield state.stopped()
            return
        so_far, earlier, calls = None, [], None
        state.turn_index += 1


async def _turn_of(
    state: AnswerState, control: Control, so_far: TurnSoFar | None, earlier: list[LogEvent]
) -> Turn:
    model = state.request.model
    if engine().is_upstream(model):
        return UpstreamTurn(state, control, earlier)
    return EngineTurn(state, control, earlier, await engine().tokenizer(model), so_far)


def _take_up(
    state: AnswerState,
) -> tuple[TurnSoFar | None, list[LogEvent], list[ToolCall] | None]:
    """Where to go on: in the middle of an engine turn, whose earlier events are the second value,
    or with the calls that have no result yet. A new answer begins at the beginning."""
    turn_events: list[LogEvent] = []
    for event in state.request.events:
        match event:
            case Started(seed=seed, turn=index):
                _remember(state, turn_events)
                turn_events = []
                state.seed, state.turn_index = seed, index
            case Delta(text=text, part=kind):
                state.num_chars[kind] += len(text)
        turn_events.append(event)
    calls = [e for e in turn_events if isinstance(e, ToolCall)]
    if not calls:
        return state.request.turn, turn_events, None
    # A turn that has called is over: what it might have written behind its calls is not missed.
    _remember(state, turn_events)
    answered = {e.id for e in turn_events if isinstance(e, ToolResult)}
    return None, [], [call for call in calls if call.id not in answered]


def _remember(state: AnswerState, events: list[LogEvent]) -> None:
    """Add a turn to what the next turn's prompt shows."""
    state.messages += prompt.assistant_messages(message_parts.fold(events))


async def _run_tools(
    state: AnswerState, control: Control, tools: dict[str, Tool], calls: list[ToolCall]
) -> AsyncGenerator[Event, None]:
    for call in calls:
        yield Phase("tool", detail=call.name)
        started_s = monotonic()
        task = asyncio.create_task(run_tool(tools, call.name, call.arguments))
        stop = asyncio.create_task(control.stopped.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return
            content, is_error = task.result()
        finally:
            task.cancel()
            stop.cancel()
        took_ms = (monotonic() - started_s) * 1e3
        state.add_tool_time(took_ms)
        state.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        yield ToolResult(call.id, content, is_error, took_ms)
