"""The only doors to a user's rows. A missing row and another person's raise the same NotFound."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from chat.errors import NotFound
from chat.models import Conversation, Generation, Message


def as_uuid(value: object, what: str = "conversation") -> UUID:
    """An id from outside. Nonsense is as missing as an unknown id."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise NotFound(what) from None


def show_deleted(is_shown: bool) -> None:
    """Let this transaction see the deleted (migration `library`)."""
    with connection.cursor() as cursor:
        value = "shown" if is_shown else ""
        cursor.execute("SELECT set_config('vitrine.deleted', %s, true)", [value])


@contextmanager
def seeing_deleted() -> Iterator[None]:
    """A transaction that sees deleted chats, too."""
    with transaction.atomic():
        show_deleted(True)
        yield
        show_deleted(False)


def conversations_of(user: Any) -> QuerySet[Conversation]:
    """All conversations of a user but those that are deleted, newest first."""
    rows = Conversation.objects.filter(owner_id=user.pk, deleted_at=None)
    return rows.order_by("-updated_at", "-id")


def conversation_for(user: Any, conversation_id: object, *, lock: bool = False) -> Conversation:
    """One query. `lock` holds the row until the end of the transaction, against others who lock it.

    Not against what refers to it: an answer that ends holds its rows already when it comes to this one.
    """
    rows = conversations_of(user)
    if lock:
        rows = rows.select_for_update(no_key=True)
    row = rows.filter(pk=as_uuid(conversation_id)).first()
    if row is None:
        raise NotFound("conversation")
    return row


def message_for(user: Any, message_id: object, *, with_deleted: bool = False) -> Message:
    """One query. A deleted message is as missing as any other, but for those who ask for it."""
    rows = Message.with_deleted if with_deleted else Message.objects
    message_id = as_uuid(message_id, "message")
    row = rows.filter(pk=message_id, conversation__owner_id=user.pk).first()
    if row is None:
        raise NotFound("message")
    return row


def answer_for(user: Any, message_id: object) -> Generation:
    """The run that wrote an answer, with the message and the conversation; one query.

    A message that no run has written, and a deleted one, are as missing as an unknown one.
    """
    rows = Generation.objects.filter(
        message=as_uuid(message_id, "answer"),
        message__deleted_at=None,
        conversation__owner_id=user.pk,
    ).select_related("message", "conversation")
    row = rows.first()
    if row is None:
        raise NotFound("answer")
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
