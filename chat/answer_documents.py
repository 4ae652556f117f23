"""What an answer is written from: documents that its question is looked up in before a model is asked,
and those in which a model that answers a program looks something up itself."""

import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from time import monotonic

from django.conf import settings

from chat import document_tool
from chat.answer_state import AnswerState
from chat.db import in_db
from chat.document_prompt import row_text
from chat.document_tool import DocumentTool, Passage
from chat.engine import engine
from chat.events import Event, Found, Phase, Searched, ToolCall, ToolResult
from chat.looking_up import look_up, passages_of
from chat.off_loop import off_loop
from chat.rewriting import Answer, standalone
from chat.screening import fit_to_read, with_fit_documents
from chat.tools import ToolFailed
from inference import prompt_room
from retrieval.excerpts import Excerpt, texts_of


async def look_up_question(state: AnswerState, answer: Answer) -> AsyncGenerator[Event, None]:
    """What the question is answered from goes into the plan; told once, also over interruptions."""
    if state.plan is None or (state.found is None and state.request.sources is None):
        return
    state.watch.begin("retrieval")
    if state.found is None and state.request.sources is not None:
        yield Phase("searching")
        sources = state.request.sources
        fit = partial(state.screen.redacted, "input")
        text = await standalone(answer, sources, state.request, fit)
        found = await look_up(
            replace(sources, standalone=text),
            state.request.caller,
            *await _room(state),
        )
        if found is not None:
            state.found = found = await _fit_excerpts(state, found)
            state.watch.note(candidates=len(found.candidates), excerpts=len(found.excerpts))
            yield found
    if state.found is not None and not state.plan.has_documents:
        plan = state.plan.with_documents(await in_db(passages_of)(state.found))
        state.plan = await with_fit_documents(state.screen, plan)
    state.watch.end()


async def _fit_excerpts(state: AnswerState, found: Found) -> Found:
    """Without passages that a policy keeps from models."""
    if not state.screen.judges("documents"):
        return found
    excerpts = list(map(Excerpt.from_json, found.excerpts))
    rows = zip(excerpts, await in_db(texts_of)(excerpts), strict=True)
    read = [row_text(one, text) for one, text in rows]
    judged = [await fit_to_read(state.screen, "documents", text) for text in read]
    pairs = zip(found.excerpts, judged, strict=True)
    return replace(found, excerpts=tuple(one for one, text in pairs if text is not None))


async def search_for_model(state: AnswerState, call: ToolCall) -> AsyncGenerator[Event, None]:
    """What a call of the request's `document_tool` brings, the last of it the result. A search that
    finds nothing is no error."""
    tool = state.request.document_tool
    assert tool is not None
    state.watch.begin("retrieval")
    yield Phase("searching")
    started_s = monotonic()
    query = document_tool.query_of(call.arguments)
    passages: list[Passage] = []
    problem = ""
    try:
        passages = await _passages(state, tool, query)
    except ToolFailed as error:
        problem = f"error: {error}"
    state.watch.note(excerpts=len(passages))
    state.watch.end()
    yield Searched(call.id, query, {one.number: one.result() for one in passages})
    text = "\n\n".join(one.row for one in passages) or document_tool.NOTHING
    took_ms = (monotonic() - started_s) * 1e3
    state.add_tool_time(took_ms)
    yield ToolResult(call.id, problem or text, bool(problem), took_ms)


async def _passages(state: AnswerState, tool: DocumentTool, query: str) -> list[Passage]:
    """As policies let the model read them, in the room that is left. Raises ToolFailed."""
    if not query:
        raise ToolFailed("say what to look for, as query")
    count, most = await _prompt_room(state)
    room = min(settings.DOCUMENT_TOKENS, most // 2) - state.passage_tokens
    room = min(room, most - await off_loop(_num_tokens, count, state))
    if room <= 0:
        raise ToolFailed("there is no room left for passages; answer from those that you have")
    first = state.num_passages + 1
    found = await document_tool.search(tool, query, state.request.caller, count, room, first)
    rows = [await fit_to_read(state.screen, "documents", one.row) for one in found]
    fit = [replace(one, row=row) for one, row in zip(found, rows, strict=True) if row is not None]
    state.num_passages += len(found)
    state.passage_tokens += sum(count(one.row) for one in fit)
    return fit


def _num_tokens(count: Callable[[str], int], state: AnswerState) -> int:
    """What the next turn's prompt has by now, about: what the last one had, images and all, is known."""
    said = state.said[state.num_said_before :]
    calls = [one.get("tool_calls", ()) for one in said]
    return state.num_prompt + sum(map(count, (*(one["content"] for one in said), *map(str, calls))))


async def _room(state: AnswerState) -> tuple[Callable[[str], int], int]:
    """How the model counts tokens, and how many of its prompt documents may fill: up to half."""
    count, room = await _prompt_room(state)
    return count, min(settings.DOCUMENT_TOKENS, room // 2)


async def _prompt_room(state: AnswerState) -> tuple[Callable[[str], int], int]:
    """How the model counts tokens, and how many its prompt may have; another server's as many as it
    likes, where nobody has said how long its context is."""
    model, max_tokens = state.request.model, state.request.sampling.max_tokens
    of_tier = state.request.max_context_tokens
    if engine().is_upstream(model):
        own = engine().upstream_spec(model).context_tokens or of_tier or sys.maxsize
        return _about_tokens, prompt_room(min(own, of_tier or own), max_tokens)
    tokenizer = await engine().tokenizer(model)
    own = engine().context_tokens(model)
    room = prompt_room(min(own, of_tier or own), max_tokens)
    return lambda text: len(tokenizer.encode(text)), room


def _about_tokens(text: str) -> int:
    return len(text.encode()) // 3
