"""Asking for answers under /api, and following, stopping and reading the runs that write them.

A run goes on whether anybody follows it or not. Chats of programs are their user's as any other.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema, Status

from chat import access, answers, stopping, values
from chat.accepted import accepted
from chat.actions import Draft, Sent
from chat.db import in_db
from chat.deciding import decide_call
from chat.events import Phase, for_reader
from chat.following import Ended, Numbered, Reset, follow
from chat.frames import MAX_BESIDE, MAX_CLIENT_ID_CHARS, checked_client_id
from chat.ids import uuid7
from chat.retakes import Retake, Wish
from chat.rights import rights_of
from chat.setup import SetupIn
from chat.streaming import server_sent_events
from chat.wire import dumps

router = Router()


class Asked(Schema):
    """With the same `client_id` it is asked once, however often it is sent; without one each time."""

    client_id: str | None = Field(None, max_length=MAX_CLIENT_ID_CHARS)


class MessageIn(Asked, SetupIn):
    """No `conversation`: a new one, to which alone `assistant`, `system_prompt`, `parameters` and
    `history_strategy` apply. No `parent`: the first message of its conversation. The models of `beside`
    answer beside `model`."""

    text: str
    model: str | None = None
    conversation: UUID | None = None
    parent: UUID | None = None
    beside: list[str] = Field([], max_length=MAX_BESIDE)


class RetakeIn(Asked):
    model: str | None = None
    wish: Wish | None = None


class StopIn(Schema):
    """`chars`: so much of the answer was read; what came behind it goes."""

    chars: int | None = Field(None, ge=0, lt=2**31)


class DecisionIn(Schema):
    allow: bool


@router.post("/messages", response={201: dict[str, Any]})
async def send_message(request: HttpRequest, data: MessageIn) -> Status[dict[str, Any]]:
    """Send a message. Its answer is written by the `run`; `answers` has one for each model."""
    rights = rights_of(request)
    draft = Draft(
        client_id=_client_id(data),
        text=data.text,
        model=data.model or rights.default_model(),
        conversation_id=data.conversation,
        parent_id=data.parent,
        tools=rights.tools,
        setup=data.as_setup(),
        beside=tuple(data.beside),
    )
    return await _begun(await answers.send(rights, draft))


@router.post("/messages/{message_id}/regenerate", response={201: dict[str, Any]})
async def regenerate(
    request: HttpRequest, message_id: UUID, data: RetakeIn
) -> Status[dict[str, Any]]:
    """Another answer beside this one: of the same model or another, shorter or longer."""
    rights = rights_of(request)
    retake = Retake(_client_id(data), message_id, data.model, data.wish, rights.tools)
    return await _begun(await answers.regenerate(rights, retake))


@router.post("/messages/{message_id}/continue", response={201: dict[str, Any]})
async def go_on(request: HttpRequest, message_id: UUID, data: Asked) -> Status[dict[str, Any]]:
    """Go on with an answer that was cut or stopped, as another one beside it."""
    rights = rights_of(request)
    sent = await answers.go_on(rights, message_id, _client_id(data), tools=rights.tools)
    return await _begun(sent)


@router.get("/runs/{run_id}")
async def show_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """How a run stands, and the answer as far as it is saved."""
    return await in_db(_run_value)(request.user, run_id)


@router.get("/runs/{run_id}/events")
async def run_events(request: HttpRequest, run_id: UUID, after: int = 0) -> HttpResponseBase:
    """The events of a run behind seq `after`, as server-sent events, until it ends."""
    await in_db(access.generation_for)(request.user, run_id)
    return server_sent_events(_server_sent(request.user, run_id, max(0, after)))


@router.post("/runs/{run_id}/stop", response={202: dict[str, Any]})
async def stop_run(request: HttpRequest, run_id: UUID, data: StopIn) -> Status[dict[str, Any]]:
    """End an answer at its next token. Of one that has ended nothing changes."""
    await in_db(access.generation_for)(request.user, run_id)  # of one that is kept
    await stopping.stop_run(request.user, run_id, data.chars)
    return Status(202, {"run": str(run_id)})


@router.post("/runs/{run_id}/calls/{call_id}", response={202: dict[str, Any]})
async def decide(
    request: HttpRequest, run_id: UUID, call_id: str, data: DecisionIn
) -> Status[dict[str, Any]]:
    """Say whether a tool may be run that waits for it (the phase `approval`). The first word counts."""
    call = checked_client_id(call_id, "call")
    await decide_call(request.user, run_id, call, data.allow)
    return Status(202, {"run": str(run_id), "call": call})


def _client_id(data: Asked) -> str:
    return str(uuid7()) if data.client_id is None else checked_client_id(data.client_id)


async def _begun(sent: Sent) -> Status[dict[str, Any]]:
    """A retry is told the same, with what has been said in the meantime."""
    return Status(201, {**await accepted(sent), "run": str(sent.generation.pk)})


def _run_value(user: Any, run_id: UUID) -> dict[str, Any]:
    row = access.generation_for(user, run_id)
    return {
        "id": str(row.pk),
        "status": row.status,
        "seq": row.seq,
        "answer": values.message_values([row.message])[0],
    }


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
