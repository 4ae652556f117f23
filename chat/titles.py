"""A title for a conversation, found by the model that answered in it."""

import logging
from dataclasses import replace
from uuid import UUID

from chat import actions, history, prompt
from chat.answer_rows import key_of
from chat.asking import AnswerRequest, Sampling
from chat.db import in_db
from chat.engine import engine
from chat.events import Delta, Finished
from chat.models import Conversation, Message, MessageStatus, Role
from chat.orchestrator import answer
from chat.tools import tools_named
from inference import ChatMessage, regex_grammar

logger = logging.getLogger(__name__)

REQUEST = "Write a short title for this conversation."
MAX_TOKENS = 24
MAX_SHOWN_CHARS = 4_000  # of both messages; a title needs no more
_TEXT = r"(?s:.{1,200})"  # more than `clean` takes, so that nothing is cut to fit
_SAMPLING = Sampling(max_tokens=MAX_TOKENS, temperature=0.0, grammar=regex_grammar(_TEXT))
_UPSTREAM_SAMPLING = Sampling(max_tokens=200)  # thinks first, perhaps, and may fix its temperature


async def find_title(conversation_id: UUID) -> bool:
    """Title a conversation after its first answer. True: it has a new title."""
    request = await in_db(_request)(conversation_id)
    if request is None:
        return False
    if engine().is_upstream(request.model):
        request = replace(request, sampling=_UPSTREAM_SAMPLING, tool_schemas=())
    title = clean(await _ask(request))
    if not title:
        return False
    return await in_db(actions.set_found_title)(conversation_id, title)


def _request(conversation_id: UUID) -> AnswerRequest | None:
    """To title the first question and answer; None when a person has chosen a title or there is more.

    The prompt begins as the chat's does, tools and all, so that the engine has read it already; a
    grammar of plain text keeps the model from calling them.
    """
    conversation = Conversation.objects.filter(pk=conversation_id, title_by_hand=False).first()
    rows = Message.objects.filter(conversation=conversation_id)
    if conversation is None or rows.filter(role=Role.USER, parent__isnull=False).exists():
        return None
    replies = rows.filter(status=MessageStatus.COMPLETE, generation__isnull=False)
    first_two = list(replies.select_related("parent", "generation").order_by("created_at")[:2])
    if len(first_two) != 1 or first_two[0].parent is None:
        return None
    reply, question = first_two[0], first_two[0].parent
    params = reply.generation.params
    asked, *said = _exchange(question, reply)
    turns = [asked, *said, {"role": "user", "content": REQUEST}]
    system, memory = history.system_text(conversation), conversation.memory
    return AnswerRequest(
        run_id=f"title-{conversation_id}",
        model=reply.model,
        messages=[prompt.system_message(system, memory), *turns],
        user=str(conversation.owner_id),
        weight=params.get("weight", 1.0),
        sampling=_SAMPLING,
        tool_schemas=tuple(tool.schema() for tool in tools_named(params.get("tools", []))),
        priority="background",
        source="title",
        api_key=key_of(params),
        conversation_id=conversation.pk,
        asked=(*_told(system, memory), asked["content"]),
    )


def _told(system: str, memory: str) -> list[str]:
    """What of the system message a person has written."""
    own = "" if system == prompt.DEFAULT_SYSTEM_PROMPT else system
    return [text for text in (own, memory) if text]


def _exchange(question: Message, reply: Message) -> list[ChatMessage]:
    shown = prompt.assistant_messages(reply.parts)
    if len(question.text) + sum(len(m["content"]) for m in shown) <= MAX_SHOWN_CHARS:
        return [{"role": "user", "content": question.text}, *shown]
    half = MAX_SHOWN_CHARS // 2
    return [
        {"role": "user", "content": question.text[:half]},
        {"role": "assistant", "content": reply.text[:half]},
    ]


async def _ask(request: AnswerRequest) -> str:
    text = ""
    async for event in answer(request):
        if isinstance(event, Delta) and event.part == "text":
            text += event.text
        elif isinstance(event, Finished) and event.reason == "stop":
            return text
    return ""  # cut off or failed: the message's first words are the better title


def clean(text: str) -> str:
    """One line without quotes, a label or a full stop, its first letter large; empty when it is no
    title. A word with a large letter further on ("iPhone") is left as it is."""
    lines = text.strip().splitlines()
    line = lines[0] if len(lines) == 1 else ""
    line = line.removeprefix("Title:").strip().strip("\"'“”«»*#").rstrip(".").strip()
    if line.split(" ")[0].islower():
        line = line[0].upper() + line[1:]
    return line if 0 < len(line) <= 80 else ""
