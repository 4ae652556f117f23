"""A title for a conversation, found by the model that answered in it."""

import logging
from uuid import UUID

from chat import actions, prompt
from chat.asking import AnswerRequest, Sampling
from chat.db import in_db
from chat.events import Delta, Finished
from chat.models import Conversation, Message, MessageStatus, Role
from chat.orchestrator import answer
from inference import ChatMessage

logger = logging.getLogger(__name__)

REQUEST = "Write a short title for this conversation."
MAX_TOKENS = 24
MAX_SHOWN_CHARS = 1_000  # of each message; a title needs no more


async def find_title(conversation_id: UUID) -> bool:
    """Title a conversation after its first answer. True: it has a new title."""
    found = await in_db(_first_exchange)(conversation_id)
    if found is None:
        return False
    model, messages = found
    title = clean(await _ask(conversation_id, model, messages))
    if not title:
        return False
    return await in_db(actions.set_found_title)(conversation_id, title)


def _first_exchange(conversation_id: UUID) -> tuple[str, list[ChatMessage]] | None:
    """The first question and answer, unless a person has chosen a title or there is more already."""
    conversation = Conversation.objects.filter(pk=conversation_id, title_by_hand=False).first()
    if conversation is None:
        return None
    rows = list(Message.objects.filter(conversation=conversation).order_by("created_at")[:3])
    if [row.role for row in rows] != [Role.USER, Role.ASSISTANT]:
        return None
    question, reply = rows
    if reply.status != MessageStatus.COMPLETE:
        return None
    turns: list[ChatMessage] = [
        {"role": "user", "content": question.text[:MAX_SHOWN_CHARS]},
        {"role": "assistant", "content": reply.text[:MAX_SHOWN_CHARS]},
        {"role": "user", "content": REQUEST},
    ]
    return reply.model, prompt.with_system(conversation.system_prompt, turns)


async def _ask(conversation_id: UUID, model: str, messages: list[ChatMessage]) -> str:
    request = AnswerRequest(
        run_id=f"title-{conversation_id}",
        model=model,
        messages=messages,
        user="titles",
        sampling=Sampling(max_tokens=MAX_TOKENS, temperature=0.0),
        priority="background",
    )
    text = ""
    async for event in answer(request):
        if isinstance(event, Delta) and event.part == "text":
            text += event.text
        elif isinstance(event, Finished) and event.reason == "stop":
            return text
    return ""  # cut off or failed: the message's first words are the better title


def clean(text: str) -> str:
    """One line without quotes, a label or a full stop; empty when it is no title."""
    lines = text.strip().splitlines()
    line = lines[0] if len(lines) == 1 else ""
    line = line.removeprefix("Title:").strip().strip("\"'“”«»*#").rstrip(".").strip()
    return line if 0 < len(line) <= 80 else ""
