"""Deleting every chat of a user, a portion at a time, so that each request is short."""

from typing import Any
from uuid import UUID

from chat import access, attached_files, run_log
from chat.errors import BadRequest
from chat.models import Conversation, Generation, Message

PORTION = 100
WORDS = "delete all chats"


def check_words(words: str) -> None:
    """Raises BadRequest unless they say what is about to happen."""
    if words != WORDS:
        raise BadRequest(f"To delete all chats, send the words “{WORDS}”.")


def delete_portion(user: Any) -> tuple[list[UUID], int]:
    """The chats that are gone now, also those that could have come back, with what was attached in them;
    and how many are left."""
    with access.seeing_deleted():
        rows = Conversation.objects.filter(owner_id=user.pk)
        ids = list(rows.order_by("pk").values_list("pk", flat=True)[:PORTION])
        named = attached_files.named_by(Message.with_deleted.filter(conversation__in=ids))
        # Their writers wait, and find nothing to write to (see library.purge).
        run_log.give_up(Generation.objects.filter(conversation__in=ids))
        rows.filter(pk__in=ids).delete()
        remaining = rows.count()
    attached_files.drop_unnamed(named)
    return ids, remaining
