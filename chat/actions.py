"""Writes of conversations and messages, each in one transaction. Answers are written by runs.py."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from chat.access import as_uuid, conversation_for
from chat.errors import BadFrame, Conflict, NotFound, SignedOut, TooManyRuns
from chat.models import (
    ACTIVE_STATUSES,
    Conversation,
    Generation,
    Message,
    MessageStatus,
    Role,
)
from chat.storable import is_storable

MAX_TEXT_CHARS = 200_000
TITLE_CHARS = 60
LEASE_S = 6.0  # how long an answer waits for a process that died before another takes it up


@dataclass(frozen=True, slots=True)
class Sent:
    """What a send made, or found when it was sent before."""

    conversation: Conversation
    message: Message
    answer: Message
    generation: Generation
    is_new: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to send. No conversation: a new one. No parent: the first of its conversation."""

    client_id: str
    text: str
    model: str
    conversation_id: UUID | None = None
    parent_id: UUID | None = None
    tools: tuple[str, ...] = ()


def send_message(user: Any, draft: Draft, *, lease_owner: str) -> Sent:
    """Save a user's message, and the empty answer with the run that will write it.

    Sending the same client_id again returns the first one's rows: double clicks and retries after a
    lost connection make one message. Raises NotFound, BadFrame, SignedOut or TooManyRuns.
    """
    text = draft.text.strip()
    if not text:
        raise BadFrame("The message is empty.")
    if len(text) > MAX_TEXT_CHARS:
        raise BadFrame(f"The message is longer than {MAX_TEXT_CHARS:,} characters.")
    if not is_storable(text):
        raise BadFrame("The message holds a character that cannot be stored.")
    with transaction.atomic():
        # The lock on the user's row makes looking, counting and starting one step for all tabs.
        # It is also the user as of now: a socket's own may be hours old.
        now = get_user_model()._default_manager.select_for_update().get(pk=user.pk)
        if not now.is_active:
            raise SignedOut
        return _sent_before(now, draft) or _save(now, draft, text, lease_owner)


def _sent_before(user: Any, draft: Draft) -> Sent | None:
    message = (
        Message.objects.filter(conversation__owner_id=user.pk, client_id=draft.client_id)
        .select_related("conversation")
        .first()
    )
    if message is None:
        return None
    answer = message.children.select_related("generation").first()
    if answer is None:
        return None
    return Sent(message.conversation, message, answer, answer.generation, is_new=False)


def _save(user: Any, draft: Draft, text: str, lease_owner: str) -> Sent:
    _check_concurrent_runs(user)
    if draft.conversation_id is None:
        if draft.parent_id is not None:
            raise NotFound("message")
        conversation = Conversation.objects.create(
            owner=user, title=first_title(text), model=draft.model
        )
    else:
        conversation = conversation_for(user, draft.conversation_id, lock=True)
        _check_parent(conversation, draft.parent_id)
        touch(conversation, model=draft.model)
    message = Message.objects.create(
        conversation=conversation,
        parent_id=draft.parent_id,
        role=Role.USER,
        text=text,
        parts=[{"type": "text", "text": text}],
        client_id=draft.client_id,
    )
    answer = Message.objects.create(
        conversation=conversation,
        parent=message,
        role=Role.ASSISTANT,
        status=MessageStatus.RUNNING,
        model=draft.model,
    )
    generation = Generation.objects.create(
        conversation=conversation,
        message=answer,
        model=draft.model,
        params={"tools": list(draft.tools), "weight": user.tier.weight},
        lease_owner=lease_owner,
        lease_until=timezone.now() + timedelta(seconds=LEASE_S),
    )
    return Sent(conversation, message, answer, generation, is_new=True)


def _check_concurrent_runs(user: Any) -> None:
    limit = user.tier.concurrent_runs
    running = Generation.objects.filter(
        conversation__owner_id=user.pk, status__in=ACTIVE_STATUSES
    ).count()
    if running >= limit:
        raise TooManyRuns(limit)


def _check_parent(conversation: Conversation, parent_id: UUID | None) -> None:
    """The parent has to be a finished answer of the same conversation."""
    if parent_id is None:
        return
    parent = Message.objects.filter(pk=parent_id, conversation=conversation).first()
    if parent is None:
        raise NotFound("message")
    if parent.role != Role.ASSISTANT:
        raise BadFrame("A message can only follow an answer.")
    if parent.status == MessageStatus.RUNNING:
        raise Conflict("The answer before is still being written.")


def first_title(text: str) -> str:
    """A title until the model has found a better one: the message's first words."""
    line = " ".join(text.split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def touch(conversation: Conversation, **changes: Any) -> None:
    """Change a conversation and count its version up."""
    for name, value in changes.items():
        setattr(conversation, name, value)
    conversation.version += 1
    conversation.save(update_fields=[*changes, "version", "updated_at"])


def rename(user: Any, conversation_id: object, title: str, version: int | None) -> Conversation:
    """Raises NotFound; Conflict when `version` is given and the conversation has moved on."""
    title = " ".join(title.split())
    if not 0 < len(title) <= 200:
        raise BadFrame("A title has 1 to 200 characters.")
    if not is_storable(title):
        raise BadFrame("The title holds a character that cannot be stored.")
    with transaction.atomic():
        conversation = conversation_for(user, conversation_id, lock=True)
        if version is not None and version != conversation.version:
            raise Conflict("The conversation was changed elsewhere.")
        touch(conversation, title=title, title_by_hand=True)
    return conversation


def set_found_title(conversation_id: UUID, title: str) -> bool:
    """Set a title that a model found, unless a person has chosen one. Keeps the list's order.

    It is no new version: who is typing a title just then would be refused for it.
    """
    rows = Conversation.objects.filter(pk=conversation_id, title_by_hand=False)
    return bool(rows.update(title=title[:200]))


def delete(user: Any, conversation_id: object) -> UUID:
    """Delete a conversation with its messages and runs. Raises NotFound."""
    conversation = conversation_for(user, as_uuid(conversation_id))
    deleted_id = conversation.pk
    with transaction.atomic():
        # Their writers wait, and find nothing to write to. An event that came in between the
        # deletion of the events and that of its run would make the whole deletion fail.
        list(conversation.generations.select_for_update().values_list("pk"))
        conversation.delete()
    return deleted_id
