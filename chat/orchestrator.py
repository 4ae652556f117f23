"""answer(): one question in, a stream of events out. Knows no socket, no HTTP and no rows.

An answer is a loop of engine turns: the model writes, and where it calls tools and they are ours to
run, their results go into the next turn's prompt. The events of a turn carry its token ids, so that
an answer whose process died can be taken up in the middle of a word.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import monotonic

from chat import answer_cache, metrics, prompt
from chat import parts as message_parts
from chat.active import counted
from chat.answer_cache import Asked, Hit
from chat.answer_documents import look_up_question, search_for_model
from chat.answer_state import AnswerState
from chat.approvals import IN_DOUBT, REFUSAL, is_allowed, may_have_run, needs_approval
from chat.asking import AnswerRequest, Control, TurnSoFar
from chat.cache_scope import CacheScope
from chat.delivered import Delivered
from chat.engine import engine, make_way
from chat.engine_turn import EngineTurn
from chat.events import (
    TERMINAL,
    Delta,
    Event,
    Failed,
    Found,
    FromCache,
    LeftOut,
    LogEvent,
    Phase,
    Refused,
    RunUsage,
    Started,
    ToolCall,
    ToolResult,
)
from chat.off_loop import off_loop_if_long
from chat.reading import Reading
from chat.rewriting import is_asked_elsewhere
from chat.screen import must_wait, screen_of
from chat.screening import fit_to_read, screened, with_fit_documents, without_stopped
from chat.seeing import seen, without
from chat.tools import Tool, run_tool
from chat.turn import Turn
from chat.upstream_turn import UpstreamTurn
from inference import ChatMessage, EngineError

_WITHHELD = "error: a policy keeps this result back"


async def answer(
    request: AnswerRequest, control: Control | None = None
) -> AsyncGenerator[Event, None]:
    """The events of one answer; the last is Finished, Stopped or Failed.

    Closing the iterator early aborts the engine's request. Engine errors become Failed.
    """
    make_way()
    with counted():  # what is judged first is under way as well: nobody ends the engine beneath it
        state = AnswerState(request, await screen_of(request))
        if state.plan is not None and await must_wait(state.screen) is None:
            state.plan = await without_stopped(state.screen, state.plan)
        texts = state.asked_texts()  # as they were written
        await off_loop_if_long(state.num_chars_to_redact, state.redact)
        begin = partial(_turns, state, control or Control())
        try:
            is_elsewhere = engine().is_upstream(request.model) or is_asked_elsewhere(
                request.sources
            )
            events = screened(
                state.screen, texts, begin, state.watch.clock, is_elsewhere=is_elsewhere
            )
            async with aclosing(_for_source(state, events)) as events:
                async for event in events:
                    if isinstance(event, TERMINAL):
                        state.watch.end()
                        metrics.heard(request.model, request.priority, event)
                    for span in state.watch.take():
                        yield span
                    yield event
        except EngineError as error:
            state.watch.end()
            for span in state.watch.take():
                yield span
            failed = Failed(error.code, str(error), error.retry_after_s, error.param)
            metrics.heard(request.model, request.priority, failed)
            yield failed


async def _for_source(
    state: AnswerState, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[Event, None]:
    """Programs know an answer that a policy has cut by its finish_reason, and keep what they got."""
    reading, delivered = Reading(), Delivered()
    async with aclosing(events):
        async for event in events:
            delivered.hear(event)
            reading.hear(event)
            match event:
                case Refused(stage="output", removes=False) if state.request.source == "api":
                    read = reading.phase or Phase("prefill")
                    usage = RunUsage(read.total, read.cached, delivered.num_tokens)
                    event = replace(state.finished("content_filter"), usage=usage)
            yield event


async def _turns(state: AnswerState, control: Control) -> AsyncGenerator[Event, None]:
    await _fit_results(state)
    if state.plan is not None:
        state.plan = await with_fit_documents(state.screen, state.plan)
    request = state.request
    tools = {tool.name: tool for tool in request.tools}
    own = set(tools) | ({request.document_tool.name} if request.document_tool else set())
    so_far, earlier, calls = _take_up(state)
    state.in_doubt = frozenset(call.id for call in calls or ())
    asked, is_cut = None, False
    theirs: list[ToolCall] = []
    await _see(state)
    # What a server's tools could say is not in the answers that were given before.
    if request.cache is not None and not request.events and not _has_servers(request):
        hit, asked = await _cached(state, request.cache)
        if hit is not None:
            for event in _given_before(state, hit):
                yield event
            return
    async with aclosing(look_up_question(state, answer)) as events:
        async for event in events:
            yield event
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
            # In the last turn no tools are offered, so that a call there is text.
            is_filtered = turn.end.reason == "content_filter"
            is_cut = turn.end.reason == "length"
            theirs = [call for call in calls if _is_theirs(request, own, call)]
            if (
                not calls
                or not own
                or is_filtered
                or state.is_last_turn
                or len(theirs) == len(calls)
            ):
                is_called = calls and (theirs or not own) and not is_filtered
                reason = "tool_calls" if is_called else turn.end.reason
                if asked is not None and reason == "stop" and not state.turn_index:
                    await _keep(state, asked, turn.logged)
                yield state.finished(reason, turn.end.stop)
                return
            _remember(state, turn.logged)
            calls = [call for call in calls if call not in theirs]
        async with aclosing(_run_tools(state, control, tools, calls)) as events:
            async for event in events:
                yield event
        if control.is_stopped:
            yield state.stopped()
            return
        if theirs:
            yield state.finished("tool_calls")
            return
        if is_cut and request.document_tool is not None:
            yield state.finished("length")  # of which nothing is left for another turn
            return
        so_far, earlier, calls = None, [], None
        state.turn_over()


def _is_theirs(request: AnswerRequest, own: set[str], call: ToolCall) -> bool:
    """Whether a program is to run it. One that runs all tools itself hears of whatever is called; where
    some are run here, a model that calls what nobody has offered is told so."""
    if call.name in own or not request.tool_schemas:
        return False
    names = (schema["function"]["name"] for schema in request.tool_schemas)
    return request.document_tool is None or call.name in names


def _has_servers(request: AnswerRequest) -> bool:
    return any(tool.server for tool in request.tools)


async def _see(state: AnswerState) -> None:
    """To a model that sees, pictures that were attached are shown, and not what was read in them."""
    if state.plan is None or not any(one.attached for one in state.plan.exchanges):
        return
    if not engine().sees_images(state.request.model):
        return
    state.watch.begin("images")
    images = await seen(state.plan)
    state.watch.note(images=len(images))
    state.watch.end()
    state.plan = state.plan.with_images(images)
    state.request = replace(state.request, sources=without(state.request.sources, images))


async def _fit_results(state: AnswerState) -> None:
    """What a program tells of its own tools is a tool's result as well. It comes with each request anew,
    and leaves a row where something follows."""
    request = state.request
    if request.source != "api" or not state.screen.judges("tools"):
        return
    messages: list[ChatMessage] = []
    for message in request.messages:
        if message["role"] == "tool":
            fit = await fit_to_read(state.screen, "tools", message["content"], is_told_again=True)
            message = {**message, "content": _WITHHELD if fit is None else fit}
        messages.append(message)
    state.request = replace(request, messages=messages)


async def _cached(state: AnswerState, scope: CacheScope) -> tuple[Hit | None, Asked]:
    request = state.request
    *earlier, question = state.messages
    asked = Asked(
        scope,
        str(question["content"]),
        answer_cache.context_of(
            scope, request.model, earlier, request.sampling, request.max_context_tokens
        ),
    )
    state.watch.begin("cache")
    hit, asked = await answer_cache.find(asked, state.request.caller)
    state.watch.note(similarity=round(hit.similarity, 4) if hit else 0.0)
    state.watch.end()
    return hit, asked


def _given_before(state: AnswerState, hit: Hit) -> Iterator[Event]:
    row = hit.row
    if row.found:
        yield Found.from_kept(row.found)
    is_own = str(row.owner_id) == state.request.user  # how others have put it is theirs
    question = row.question if is_own else ""
    yield FromCache(row.created_at.isoformat(), question, round(hit.similarity, 4))
    yield Started(state.request.model, row.revision, 0)
    state.wrote("text")
    yield Delta(row.text, 0)
    yield state.finished("stop")


async def _keep(state: AnswerState, asked: Asked, logged: list[LogEvent]) -> None:
    """What was said without any tool, since what a clock says is soon wrong, and nothing that a policy
    stops or takes something out of: it is not judged yet."""
    text = message_parts.text_of(message_parts.fold(logged))
    if state.screen.may_stop("output"):
        outcome = await state.screen.judge("output", [text])
        if outcome.stop or outcome.redacts:
            return
    found = state.found
    kept = found and found.kept()
    revisions = [event.revision for event in logged if isinstance(event, Started)]
    await answer_cache.keep(asked, text, kept, state.request.model, (revisions or [""])[-1])


async def _turn_of(
    state: AnswerState, control: Control, so_far: TurnSoFar | None, earlier: list[LogEvent]
) -> Turn:
    model = state.request.model
    if engine().is_upstream(model):
        return UpstreamTurn(state, control, earlier)
    state.watch.begin(
        "prompt", turn=state.turn_index
    )  # reading a tokenizer's files is a part of it
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
            case Found():
                state.found = event
            case LeftOut() if state.plan:
                state.told_left_out = event
                state.plan = state.plan.showing(event)
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
    """Add a turn to what the next turn's prompt shows. One that was cut and gone on with is one."""
    state.said = prompt.joined(
        [*state.said, *prompt.assistant_messages(message_parts.fold(events))]
    )


async def _run_tools(
    state: AnswerState, control: Control, tools: dict[str, Tool], calls: list[ToolCall]
) -> AsyncGenerator[Event, None]:
    for call in calls:
        if state.request.document_tool and call.name == state.request.document_tool.name:
            async with aclosing(search_for_model(state, call)) as events:
                async for event in events:
                    yield _told(state, event) if isinstance(event, ToolResult) else event
            continue
        if may_have_run(state, control, tools.get(call.name), call):
            yield _told(state, ToolResult(call.id, IN_DOUBT, True))
            continue
        if needs_approval(state, tools.get(call.name), call):
            state.watch.begin("approval", name=call.name)
            yield Phase("approval", detail=call.id)
            allowed = await is_allowed(state, control, call)
            state.watch.note(is_allowed=allowed)
            state.watch.end()
            if control.is_stopped:
                return
            if not allowed:
                yield _told(state, ToolResult(call.id, REFUSAL, True))
                continue
        state.watch.begin("tool", name=call.name)
        yield Phase("tool", detail=call.name)
        started_s = monotonic()
        task = asyncio.create_task(run_tool(tools, call.name, call.arguments, state.request.user))
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
        fit = await fit_to_read(state.screen, "tools", content)
        content, is_error = (_WITHHELD, True) if fit is None else (fit, is_error)
        facts_of = tools[call.name].facts_of if call.name in tools and not is_error else None
        state.watch.note(is_error=is_error, **(facts_of(content) if facts_of else {}))
        state.watch.end()
        state.add_tool_time(took_ms)
        yield _told(state, ToolResult(call.id, content, is_error, took_ms))


def _told(state: AnswerState, result: ToolResult) -> ToolResult:
    """The model reads it in its next turn."""
    state.said.append({"role": "tool", "tool_call_id": result.id, "content": result.content})
    return result
