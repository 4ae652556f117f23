"""When a run logs and shows what it has heard: text by the beat, all else at once, nothing twice."""

import asyncio
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from chat.asking import AnswerRequest, Control
from chat.engine_turn import EngineTurn
from chat.events import Delta, Phase, ToolCall
from chat.runs import FLUSH_S, PHASE_S, Run
from chat.spans import Clock, Trace, new_trace_id
from inference import SamplingParams


def writing_run() -> Run:
    """It has shown its first text."""
    ids = {name: uuid4() for name in ("conversation_id", "message_id")}
    run = Run(uuid4(), **ids, user_id=1, trace=Trace(Clock(), new_trace_id()))
    run.events = [Delta("It", 0)]
    run.phase = Phase("decode", tokens=1)
    return run


async def is_over_at_once(work: "asyncio.Task[None]") -> bool:
    await asyncio.sleep(0)
    return work.done()


async def test_text_that_was_gathered_waits_no_second_time() -> None:
    run = writing_run()
    run._flushed_s = monotonic() - FLUSH_S
    run._hear(Delta(" has been gathered", 2))
    assert await is_over_at_once(asyncio.create_task(run._gather()))


async def test_text_that_comes_by_the_token_waits_for_the_beat() -> None:
    run = writing_run()
    run._flushed_s = monotonic()
    run._hear(Delta(" has", 2))
    work = asyncio.create_task(run._gather())
    assert not await is_over_at_once(work)
    run._hear(ToolCall("c1", "clock", "{}"))
    await asyncio.wait_for(work, 5)


async def test_a_call_is_not_kept_waiting() -> None:
    run = writing_run()
    run._flushed_s = monotonic()
    run._hear(ToolCall("c1", "clock", "{}"))
    assert await is_over_at_once(asyncio.create_task(run._gather()))


def test_numbers_of_a_phase_are_told_a_few_times_a_second() -> None:
    run = writing_run()
    run._told_phase_s = monotonic()
    run._hear(Phase("decode", tokens=2))
    assert run.phase == Phase("decode", tokens=1), "nobody is told of it yet"
    run._told_phase_s = monotonic() - PHASE_S * 2
    news = run.subscribe()
    run._hear(Phase("decode", tokens=3))
    assert run.phase == Phase("decode", tokens=3)
    assert news.is_set()


def test_what_is_about_to_be_shown_takes_the_phase_along() -> None:
    run = writing_run()
    news = run.subscribe()
    run._hear(Delta(" has", 2))
    run._hear(Phase("tool", detail="clock"))
    assert run.phase == Phase("tool", detail="clock")
    assert not news.is_set()


def test_the_engine_is_told_how_patient_the_reader_is() -> None:
    request = AnswerRequest("r", "m", [], "1", patience_s=FLUSH_S)
    state: Any = SimpleNamespace(request=request, turn_index=0)
    turn = EngineTurn(state, Control(), [], cast(Any, None), None)
    asked = turn._engine_request((1,), (), SamplingParams(max_tokens=1))
    assert asked.patience_s == FLUSH_S
