"""Reads: pages of conversations, and the branch of a tree that leads to a message."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from chat import access, prompt
from chat.errors import BadCursor
from chat.models import Conversation, Message, MessageStatus, Role
from inference import ChatMessage

PAGE_SIZE = 40
SHOWN_TO_MODELS = (MessageStatus.COMPLETE, MessageStatus.STOPPED)


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Some of a user's conversations, newest first; the cursor leads to the page behind."""

    conversations: list[Conversation]
    next_cursor: str | None


def conversation_page(user: Any, cursor: str = "") -> ConversationPage:
    """The page behind a cursor, from the newest on without one. Raises BadCursor."""
    rows = access.conversations_of(user)
    if cursor:
        updated_at, last_id = _read_cursor(cursor)
        # The id decides between conversations that were changed in the same moment.
        rows = rows.filter(Q(updated_at__lt=updated_at) | Q(updated_at=updated_at, id__lt=last_id))
    page = list(rows[: PAGE_SIZE + 1])
    is_last = len(page) <= PAGE_SIZE
    return ConversationPage(page[:PAGE_SIZE], None if is_last else _cursor(page[PAGE_SIZE - 1]))


def _cursor(last: Conversation) -> str:
    """A place between two conversations, which may be changed or deleted meanwhile."""
    return f"{last.updated_at.isoformat()}~{last.pk}"


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        updated_at, last_id = cursor.split("~")
        place = datetime.fromisoformat(updated_at), UUID(last_id)
    except ValueError:
        raise BadCursor from None
    if place[0].tzinfo is None:
        raise BadCursor
    return place


def all_messages(conversation: Conversation) -> list[Message]:
    """Every message of the tree, oldest first. One query."""
    return list(Message.objects.filter(conversation=conversation).order_by("created_at", "id"))


def branch_to(conversation: Conversation, message_id: UUID | None) -> list[Message]:
    """The messages from the root to `message_id`, oldest first. One query."""
    return branch(all_messages(conversation), message_id)


def branch(messages: Iterable[Message], message_id: UUID | None) -> list[Message]:
    """The path from the root to `message_id` among the messages of a conversation."""
    by_id = {row.pk: row for row in messages}
    branch: list[Message] = []
    current = by_id.get(message_id) if message_id else None
    while current is not None:
        branch.append(current)
        current = by_id.get(current.parent_id) if current.parent_id else None
    return branch[::-1]


def as_chat(conversation: Conversation, message_id: UUID | None) -> list[ChatMessage]:
    """The chat up to and including a message, system message first.

    Answers that failed or were refused are left out; a model would take them for its own words.
    The questions around such a gap become one turn: many templates insist on alternation.
    """
    turns: list[ChatMessage] = []
    for message in branch_to(conversation, message_id):
        if message.role == Role.USER:
            if turns and turns[-1]["role"] == "user":
                turns[-1] = {"role": "user", "content": f"{turns[-1]['content']}\n\n{message.text}"}
            else:
                turns.append({"role": "user", "content": message.text})
        elif message.status in SHOWN_TO_MODELS:
            turns += prompt.assistant_messages(message.parts)
    return prompt.with_system(conversation.system_prompt, turns)
