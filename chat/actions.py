"""Writes of conversations and messages, each in one transaction. Answers are written by runs.py."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from chat import personal, remembering
from chat.access import conversation_for
from chat.answer_rows import begin_answers, message_once, params_of, rights_now
from chat.branches import children_of, is_chosen, path_to, visible
from chat.errors import BadFrame, Conflict, NotFound
from chat.events import LogEvent
from chat.models import Conversation, Generation, Message, MessageStatus, Role
from chat.rights import Rights
from chat.setup import AS_USUAL, Setup
from chat.sources import NOTHING, Picked, named
from chat.storable import is_storable

MAX_TEXT_CHARS = 200_000
TITLE_CHARS = 60
_PLACE = ("parent_id", "chosen", "deleted_at")  # of a message in its tree


@dataclass(frozen=True, slots=True)
class Sent:
    """What a send made, or found when it was sent before; `message` is the question.

    `is_first`: there is nothing else in the conversation. `said`: what a cut answer had said, when
    the new one goes on behind it.
    """

    conversation: Conversation
    message: Message
    generations: list[Generation]
    is_new: bool
    is_first: bool = False
    said: tuple[LogEvent, ...] = ()

    @property
    def generation(self) -> Generation:
        return self.generations[0]

    @property
    def answer(self) -> Message:
        return self.generation.message

    @property
    def answers(self) -> list[Message]:
        return [generation.message for generation in self.generations]


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to send. No conversation: a new one. No parent: the first of its conversation.

    `beside`: models that answer it too, side by side with `model`.
    """

    client_id: str
    text: str
    model: str
    conversation_id: UUID | None = None
    parent_id: UUID | None = None
    tools: tuple[str, ...] = ()
    setup: Setup = AS_USUAL  # of a new conversation
    beside: tuple[str, ...] = ()
    picked: Picked = NOTHING


def send_message(rights: Rights, draft: Draft, *, lease_owner: str) -> Sent:
    """Save a user's message, and the empty answers with the runs that will write them.

    Sending the same client_id again returns the first one's rows: double clicks and retries after a
    lost connection make one message. Raises NotFound (retrieval's, too), BadFrame, SignedOut,
    UnknownModel, TooManyRuns or BudgetSpent.
    """
    text = checked_text(draft.text)
    with transaction.atomic():
        now = rights_now(rights)
        return _sent_before(now.user, draft) or _save(now, draft, text, lease_owner)


def checked_text(text: str) -> str:
    """Stripped. Raises BadFrame for a text that is none, or cannot be kept."""
    text = text.strip()
    if not text:
        raise BadFrame(gettext("The message is empty."))
    check_length(text)
    if not is_storable(text):
        raise BadFrame(gettext("The message holds a character that cannot be stored."))
    return text


def check_length(text: str) -> None:
    """Raises BadFrame for a text that is too long for a message."""
    if len(text) > MAX_TEXT_CHARS:
        problem = gettext("The message is longer than %(n)s characters.")
        raise BadFrame(problem % {"n": f"{MAX_TEXT_CHARS:,}"})


def _sent_before(user: Any, draft: Draft) -> Sent | None:
    message = message_once(user, draft.client_id)
    if message is None:
        return None
    asked = Generation.objects.filter(message__parent=message, params__sent=draft.client_id)
    generations = list(asked.select_related("message").order_by("created_at", "pk"))
    if not generations:
        raise Conflict("This message's id was used for something else.")
    return Sent(message.conversation, message, generations, is_new=False)


def _save(rights: Rights, draft: Draft, text: str, lease_owner: str) -> Sent:
    user, models = rights.user, (draft.model, *draft.beside)
    if draft.conversation_id is None:
        if draft.parent_id is not None:
            raise NotFound("message")
        setup = personal.setup_of(user, draft.setup)
        conversation = new_chat(user, draft, text, setup)
        conversation.save(force_insert=True)
    else:
        conversation = conversation_for(user, draft.conversation_id, lock=True)
        _check_parent(conversation, draft.parent_id)
        touch(conversation, model=draft.model)
        choose_path(conversation, draft.parent_id, version=conversation.version)
    message = question_in(conversation, draft, text)
    message.sources = named(draft.picked)
    params = params_for(rights, draft, conversation)
    generations = begin_answers(rights, message, models, params, lease_owner)
    is_first = draft.conversation_id is None
    return Sent(conversation, message, generations, is_new=True, is_first=is_first)


def new_chat(user: Any, draft: Draft, text: str, setup: dict[str, Any]) -> Conversation:
    """Not saved yet."""
    return Conversation(owner=user, title=first_title(text), model=draft.model, **setup)


def question_in(conversation: Conversation, draft: Draft, text: str) -> Message:
    """Not saved yet, and without what was picked for it."""
    return Message(
        conversation=conversation,
        parent_id=draft.parent_id,
        role=Role.USER,
        text=text,
        parts=[{"type": "text", "text": text}],
        client_id=draft.client_id,
        chosen=conversation.version,
    )


def params_for(rights: Rights, draft: Draft, conversation: Conversation) -> dict[str, Any]:
    """Of the runs that answer it."""
    return {
        "tools": [
            *draft.tools,
            *remembering.tools_of(rights, conversation, (draft.model, *draft.beside)),
        ],
        "sent": draft.client_id,
        "sampling": conversation.parameters,
        **params_of(rights),
    }


def _check_parent(conversation: Conversation, parent_id: UUID | None) -> None:
    """The parent has to be a finished answer of the same conversation, or the place of one."""
    if parent_id is None:
        return
    parent = Message.with_deleted.filter(pk=parent_id, conversation=conversation).first()
    if parent is None:
        raise NotFound("message")
    if parent.role != Role.ASSISTANT:
        raise BadFrame("A message can only follow an answer.")
    if parent.status == MessageStatus.RUNNING:
        raise Conflict(gettext("The answer before is still being written."))


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


def choose_path(conversation: Conversation, message_id: UUID | None, *, version: int) -> bool:
    """Make the branch that leads to a message the one that is shown, from this version on.

    False: it is already. Raises NotFound for a message that is not seen.
    """
    if message_id is None:
        return False
    rows = visible(Message.with_deleted.filter(conversation=conversation).only(*_PLACE))
    path = path_to(rows, message_id)
    if not path:
        raise NotFound("message")
    siblings = children_of(rows)
    behind = [row.pk for row in path if not is_chosen(row, siblings[row.parent_id])]
    Message.with_deleted.filter(pk__in=behind).update(chosen=version)
    return bool(behind)


def check_version(conversation: Conversation, version: int | None) -> None:
    """Raises Conflict when `version` is given and the conversation has moved on."""
    if version is not None and version != conversation.version:
        text = gettext("This chat was changed elsewhere. Look at it again before you change it.")
        raise Conflict(text)


def change_setup(
    user: Any, conversation_id: object, version: int | None, **changes: Any
) -> Conversation:
    """Another system prompt, parameters, strategy or tools for a chat, from its next answer on.

    Raises NotFound, Conflict.
    """
    with transaction.atomic():
        conversation = conversation_for(user, conversation_id, lock=True)
        check_version(conversation, version)
        touch(conversation, **changes)
    return conversation


def set_found_title(conversation_id: UUID, title: str) -> bool:
    """Set a title that a model found, unless a person has chosen one. Keeps the list's order.

    It is no new version: who is typing a title just then would be refused for it.
    """
    rows = Conversation.objects.filter(pk=conversation_id, title_by_hand=False)
    return bool(rows.update(title=title[:200]))
