"""Reads: the branch of the tree that leads to a message, as a model is shown it."""

from uuid import UUID

from chat import prompt
from chat.models import Conversation, Message, MessageStatus, Role
from inference import ChatMessage

SHOWN_TO_MODELS = (MessageStatus.COMPLETE, MessageStatus.STOPPED)


def branch_to(conversation: Conversation, message_id: UUID | None) -> list[Message]:
    """The messages from the root to `message_id`, oldest first. One query."""
    by_id = {row.pk: row for row in Message.objects.filter(conversation=conversation)}
    branch: list[Message] = []
    current = by_id.get(message_id) if message_id else None
    while current is not None:
        branch.append(current)
        current = by_id.get(current.parent_id) if current.parent_id else None
    return branch[::-1]


def as_chat(conversation: Conversation, message_id: UUID | None) -> list[ChatMessage]:
    """The chat up to and including a message, system message first.

    Answers that failed or were refused are left out; a model would take them for its own words.
    """
    turns: list[ChatMessage] = []
    for message in branch_to(conversation, message_id):
        if message.role == Role.USER:
            turns.append({"role": "user", "content": message.text})
        elif message.status in SHOWN_TO_MODELS:
            turns += prompt.assistant_messages(message.parts)
    return prompt.with_system(conversation.system_prompt, turns)
