"""What is told of an answer that was asked for, at the socket and under /api."""

from typing import Any

from chat import values
from chat.actions import Sent
from chat.db import in_db
from chat.models import MessageStatus


async def accepted(sent: Sent) -> values.Value:
    """Of what is new everything is known, but for answers that another tab has just asked for in the
    same chat; a notice that follows tells of those."""
    if not sent.is_new:
        return await in_db(_found_values)(sent)
    running = [str(generation.pk) for generation in sent.generations]
    answers = [values.message_value(g.message, g.pk) for g in sent.generations]
    conversation = values.conversation_value(sent.conversation, running, MessageStatus.RUNNING)
    return _values(sent, conversation, answers)


def _found_values(sent: Sent) -> values.Value:
    conversation = values.conversation_summary(sent.conversation)
    return _values(sent, conversation, values.message_values(sent.answers))


def _values(sent: Sent, conversation: values.Value, answers: list[Any]) -> values.Value:
    return {
        "conversation": conversation,
        "message": values.message_value(sent.message),
        "answer": answers[0],
        "answers": answers,
    }
