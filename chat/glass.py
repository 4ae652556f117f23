"""The glass over REST: how an answer came about, whether it would again, and what else it could say."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router, Schema
from pydantic import Field

from chat import traces
from chat.admission import check_requests
from chat.db import in_db
from chat.document_glass import excerpts_for, retrieval_of, texts_at
from chat.errors import BadFrame
from chat.frames import MAX_CLIENT_ID_CHARS
from chat.likelihoods import likelihoods
from chat.meter import Sketch, meter
from chat.parameters import Parameters
from chat.replay import Progress, Result, replay
from chat.rights import rights_of
from chat.setup import ServerNames
from chat.sources import MAX_PICKED, NOTHING, Picked
from chat.streaming import server_sent_events
from chat.temporary import said_of
from chat.token_branches import Fork, branch
from chat.warmth import warmth
from chat.wire import dumps

router = Router()


class SourcesIn(Schema):
    collections: list[UUID] = Field([], max_length=MAX_PICKED)
    documents: list[UUID] = Field([], max_length=MAX_PICKED)


class DraftIn(Schema):
    """A message that might be sent: where, to which model, behind which answer, answered from what.
    With `is_temporary` it would begin a temporary chat, which nothing is remembered in."""

    text: str = ""
    model: str | None = None
    conversation: str | None = None
    parent: str | None = None
    assistant: str | None = None
    system_prompt: str = ""
    parameters: Parameters | None = None
    tool_servers: ServerNames | None = None
    messages: list[Any] = []
    sources: SourcesIn | None = None
    is_temporary: bool = False


@router.post("/meter")
async def measure_draft(request: HttpRequest, data: DraftIn) -> dict[str, Any]:
    """How many tokens a prompt with this draft would have, by segment, and what it would leave out."""
    rights = rights_of(request)
    model = data.model or rights.default_model()
    rights.require_model(model)
    messages = tuple(said_of(data.messages))
    given = data.sources
    picked = Picked(tuple(given.collections), tuple(given.documents)) if given else NOTHING
    places = (data.conversation, data.parent, data.assistant, data.system_prompt, messages, picked)
    parameters = data.parameters.as_values() if data.parameters else None
    servers = None if data.tool_servers is None else tuple(data.tool_servers)
    is_temporary = data.is_temporary or bool(messages)
    sketch = Sketch(data.text, model, *places, parameters, servers, is_temporary)
    return await meter(rights, sketch)


@router.get("/warmth")
async def show_warmth(request: HttpRequest) -> dict[str, Any]:
    """How much of the user's latest chats is still in the engine's cache."""
    return {"conversations": await warmth(request.user)}


@router.get("/messages/{message_id}/excerpts")
async def show_excerpts(request: HttpRequest, message_id: str) -> dict[str, Any]:
    """What an answer was written from, as far as you may still read it."""
    return await in_db(excerpts_for)(request.user, message_id)


class ExcerptsIn(Schema):
    """Places of passages, as the events of an answer have told them."""

    excerpts: list[Any]


@router.post("/excerpts")
async def read_excerpts(request: HttpRequest, data: ExcerptsIn) -> dict[str, Any]:
    """What an answer of a temporary chat was written from, as far as you may still read it."""
    return await in_db(texts_at)(data.excerpts)


@router.get("/messages/{message_id}/retrieval")
async def show_retrieval(request: HttpRequest, message_id: str) -> dict[str, Any]:
    """All that was found for an answer, why it was not shown, and what the model read of it."""
    return await in_db(retrieval_of)(request.user, message_id)


@router.get("/messages/{message_id}/trace")
async def show_trace(request: HttpRequest, message_id: str) -> dict[str, Any]:
    """What an answer did when, and what it cost."""
    return await in_db(traces.trace_of)(request.user, message_id)


@router.get("/messages/{message_id}/tokens")
async def show_tokens(request: HttpRequest, message_id: str) -> dict[str, Any]:
    """How likely each token of an answer was, and the likeliest others. Asks the engine."""
    rights = rights_of(request)
    await check_requests(rights)
    return await likelihoods(rights, message_id)


class ForkIn(Schema):
    """Which token of an answer gives way to which other one; the same client id branches once."""

    turn: int = 0
    token: int
    choice: int
    client_id: str


@router.post("/messages/{message_id}/branch")
async def branch_answer(request: HttpRequest, message_id: str, data: ForkIn) -> dict[str, Any]:
    """Begin another answer that goes on from a chosen token. Its run is followed as any other."""
    if not 0 < len(data.client_id) <= MAX_CLIENT_ID_CHARS or "\x00" in data.client_id:
        raise BadFrame(f"'client_id' has 1 to {MAX_CLIENT_ID_CHARS} characters.")
    fork = Fork(data.client_id, message_id, data.turn, data.token, data.choice)
    generation = await branch(rights_of(request), fork)
    return {"run": str(generation.pk), "answer": str(generation.message_id)}


@router.post("/messages/{message_id}/replay")
async def replay_answer(request: HttpRequest, message_id: str) -> HttpResponseBase:
    """Write an answer again from its seed: server-sent events, `same`, `differs` or `broken` last."""
    rights = rights_of(request)
    await check_requests(rights)
    news = replay(rights, message_id)
    first = await anext(news)  # what is refused is refused before the stream begins
    return server_sent_events(_server_sent(first, news))


async def _server_sent(
    first: Progress | Result, rest: AsyncGenerator[Progress | Result, None]
) -> AsyncGenerator[str, None]:
    async with aclosing(rest):
        yield _frame(first)
        async for piece in rest:
            yield _frame(piece)


def _frame(piece: Progress | Result) -> str:
    return f"event: {piece.kind}\ndata: {dumps(asdict(piece))}\n\n"
