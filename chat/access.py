"""The only doors to a user's rows. A missing row and another person's raise the same NotFound."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from chat.errors import NotFound
from chat.models import Conversation, Generation, Message


def as_uuid(value: object, what: str = "conversation") -> UUID:
    """An id from outside. Nonsense is as missing as an unknown id."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise NotFound(what) from None


def conversations_of(user: Any) -> QuerySet[Conversation]:
    """All conversations of a user, newest first."""
    return Conversation.objects.filter(owner_id=user.pk).order_by("-updated_at", "-id")


def conversation_for(user: Any, conversation_id: object, *, lock: bool = False) -> Conversation:
    """One query. `lock` holds the row until the end of the transaction."""
    rows = conversations_of(user)
    if lock:
        rows = rows.select_for_update()
    row = rows.filter(pk=as_uuid(conversation_id)).first()
    if row is None:
        raise NotFound("conversation")
    return row


def message_for(user: Any, message_id: object) -> Message:
    rows = Message.objects.filter(pk=as_uuid(message_id, "message"), conversation__owner_id=user.pk)
    row = rows.first()
    if row is None:
        raise NotFound("message")
    return row


def generation_for(user: Any, run_id: object) -> Generation:
    """A run with its message; one query."""
    rows = Generation.objects.filter(
        pk=as_uuid(run_id, "run"), conversation__owner_id=user.pk
    ).select_related("message")
    row = rows.first()
    if row is None:
        raise NotFound("run")
    return row
