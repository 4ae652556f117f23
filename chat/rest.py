"""Vitrine's own REST API under /api: conversations, runs and models."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI, Schema

from chat import access, actions, history, notices, runs, values
from chat.api_errors import add_error_handlers
from chat.db import in_db
from chat.engine import engine
from chat.events import Phase, for_reader
from chat.following import Ended, Numbered, Reset, follow
from chat.wire import dumps

api = NinjaAPI(
    title="Vitrine",
    version="1",
    urls_namespace="vitrine-api",
    docs_url=None,  # ninja's page loads its scripts from elsewhere, which our policy forbids
    openapi_url="/openapi.json",
)
add_error_handlers(api)


class Rename(Schema):
    """`version` is the one that you saw; a newer one on the server refuses the change."""

    title: str
    version: int | None = None


class LoadModel(Schema):
    model: str


@api.get("/conversations")
async def list_conversations(request: HttpRequest, cursor: str = "") -> dict[str, Any]:
    """The newest first, 40 a page; `next` is the cursor of the page behind, or null."""
    page, next_cursor = await in_db(_page)(request.user, cursor)
    return {"items": page, "next": next_cursor}


@api.get("/conversations/{conversation_id}")
async def show_conversation(request: HttpRequest, conversation_id: str) -> dict[str, Any]:
    """A conversation with all messages of its tree, oldest first."""
    return await in_db(_whole)(request.user, conversation_id)


@api.patch("/conversations/{conversation_id}")
async def rename_conversation(
    request: HttpRequest, conversation_id: str, data: Rename
) -> dict[str, Any]:
    """Give a conversation another title."""
    row = await in_db(actions.rename)(request.user, conversation_id, data.title, data.version)
    await notices.conversation_changed(request.user.pk, row.pk)
    return {"conversation": await in_db(values.conversation_summary)(row)}


@api.delete("/conversations/{conversation_id}", response={204: None})
async def delete_conversation(request: HttpRequest, conversation_id: str) -> tuple[int, None]:
    """Delete a conversation with all of its messages. Answers being written are stopped."""
    await _stop_runs_of(request.user, conversation_id)
    deleted_id = await in_db(actions.delete)(request.user, conversation_id)
    await notices.conversation_deleted(request.user.pk, deleted_id)
    return 204, None


@api.get("/runs/{run_id}/events")
async def run_events(request: HttpRequest, run_id: UUID, after: int = 0) -> HttpResponseBase:
    """The events of a run behind seq `after`, as server-sent events, until it ends."""
    await in_db(access.generation_for)(request.user, run_id)
    return StreamingHttpResponse(
        _server_sent(request.user, run_id, max(0, after)),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@api.get("/models")
async def list_models(request: HttpRequest) -> dict[str, Any]:
    """Every model of the catalogue and how it stands."""
    return {"models": [values.model_value(state) for state in engine().models()]}


@api.post("/models/load")
async def load_model(request: HttpRequest, data: LoadModel) -> dict[str, Any]:
    """Start loading a model; `GET /api/models` and the socket tell how it goes."""
    engine().load(data.model)
    return {"model": values.model_value(engine().state(data.model))}


def _page(user: Any, cursor: str) -> tuple[list[values.Value], str | None]:
    page = history.conversation_page(user, cursor)
    return values.conversation_summaries(page.conversations), page.next_cursor


def _whole(user: Any, conversation_id: str) -> dict[str, Any]:
    row = access.conversation_for(user, conversation_id)
    return {
        "conversation": values.conversation_summary(row),
        "messages": values.message_values(history.all_messages(row)),
    }


async def _stop_runs_of(user: Any, conversation_id: str) -> None:
    row = await in_db(access.conversation_for)(user, conversation_id)
    for run in runs.active():
        if run.conversation_id == row.pk:
            run.stop(None)


async def _server_sent(user: Any, run_id: UUID, after: int) -> AsyncGenerator[str, None]:
    async with aclosing(follow(user, run_id, after)) as news:
        async for piece in news:
            match piece:
                case Numbered(seq, event):
                    yield f"id: {seq}\nevent: run.event\ndata: {dumps(for_reader(event))}\n\n"
                case Phase():
                    yield f"event: run.phase\ndata: {dumps(values.phase_value(piece))}\n\n"
                case Reset():
                    yield "event: run.reset\ndata: {}\n\n"
                case Ended(message):
                    yield f"event: run.ended\ndata: {dumps(message)}\n\n"
