"""Rows as the JSON values of docs/socket.md."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery

from chat.events import Phase, places_of
from chat.models import (
    ACTIVE_STATUSES,
    Conversation,
    Folder,
    Generation,
    Message,
    MessageStatus,
    Role,
)
from inference import ModelState

Value = dict[str, Any]


def conversation_summaries(conversations: Iterable[Conversation]) -> list[Value]:
    """Summaries of many conversations; a query for all their running answers, one for the last ones."""
    rows = list(conversations)
    running: dict[UUID, list[str]] = defaultdict(list)
    active = Generation.objects.filter(
        conversation__in=[c.pk for c in rows], status__in=ACTIVE_STATUSES
    )
    for run_id, conversation_id in active.values_list("pk", "conversation_id"):
        running[conversation_id].append(str(run_id))
    ended = _last_answers([row.pk for row in rows if row.pk not in running])
    last = dict.fromkeys(running, MessageStatus.RUNNING) | ended
    return [conversation_value(row, running[row.pk], last.get(row.pk)) for row in rows]


def _last_answers(conversation_ids: list[UUID]) -> dict[UUID, str | None]:
    """The status of the newest answer of each; None where there is none."""
    if not conversation_ids:
        return {}
    answers = Message.objects.filter(conversation=OuterRef("pk"), role=Role.ASSISTANT)
    newest = answers.order_by("-created_at").values("status")[:1]
    rows = Conversation.objects.filter(pk__in=conversation_ids)
    return dict(rows.values_list("pk", Subquery(newest)))


def conversation_summary(conversation: Conversation) -> Value:
    return conversation_summaries([conversation])[0]


def conversation_value(
    conversation: Conversation, running: list[str], last_answer: str | None
) -> Value:
    """`running` are the answers that are being written in it, `last_answer` is how the newest stands."""
    return {
        "id": str(conversation.pk),
        "url": f"/c/{conversation.pk}",
        "title": conversation.title,
        "model": conversation.model,
        "folder": str(conversation.folder_id) if conversation.folder_id else None,
        "tags": conversation.tags,
        "pinned": conversation.pinned_at is not None,
        "archived": conversation.archived_at is not None,
        "unread": conversation.unread_at is not None,
        "version": conversation.version,
        "assistant": conversation.assistant,
        "tool_servers": conversation.tool_servers,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "running": running,
        "last_answer": last_answer,
    }


def folder_value(folder: Folder) -> Value:
    return {"id": str(folder.pk), "name": folder.name, "version": folder.version}


def message_values(messages: Iterable[Message]) -> list[Value]:
    """Values of many messages; one query for the runs of those that are being written."""
    rows = list(messages)
    unfinished = [row.pk for row in rows if row.status == MessageStatus.RUNNING]
    runs: dict[UUID, UUID] = {}
    if unfinished:
        pairs = Generation.objects.filter(message__in=unfinished).values_list("message_id", "pk")
        runs = dict(pairs)
    return [message_value(row, runs.get(row.pk)) for row in rows]


def message_value(message: Message, run_id: UUID | None = None) -> Value:
    """`run_id` is set while the message is being written."""
    return {
        "id": str(message.pk),
        "conversation": str(message.conversation_id),
        "parent": str(message.parent_id) if message.parent_id else None,
        "role": message.role,
        "status": "deleted" if message.deleted_at else message.status,
        "text": "" if message.deleted_at else message.text,
        "parts": [] if message.deleted_at else message.parts,
        "model": message.model,
        "is_pinned": message.is_pinned,
        "left_out": message.left_out,
        "sources": None if message.deleted_at else message.sources,
        "found": None if message.deleted_at else _found_value(message.found),
        "from_cache": None if message.deleted_at else message.from_cache,
        "feedback": None if message.deleted_at else message.feedback,
        "run": str(run_id) if run_id else None,
        "created_at": message.created_at.isoformat(),
        "finish_reason": message.finish_reason,
        "error": message.error,
        "usage": message.usage,
        "timings": message.timings,
        "chosen": message.chosen,
        "edited": message.edited,
        "resumed": message.resumed,
    }


def _found_value(found: Value | None) -> Value | None:
    return found and {**found, "excerpts": places_of(found["excerpts"])}


def model_value(state: ModelState) -> Value:
    return {
        "name": state.spec.name,
        "kind": state.spec.kind,
        "title": state.spec.title,
        "description": state.spec.description,
        "state": state.state,
        "detail": state.detail,
        "progress": state.progress,
        "context_tokens": state.max_context_tokens,
        "default": state.is_default,
        "straggling": state.is_straggling,
        "tools": state.has_tools,
        "images": state.sees_images,
    }


def phase_value(phase: Phase) -> Value:
    """Not by dataclasses.asdict, which copies deeply and takes a dozen times as long."""
    return {name: getattr(phase, name) for name in phase.__slots__}
