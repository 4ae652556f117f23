"""The message that a schedule sends: where, by which model, and what from. Synchronous."""

from collections.abc import Sequence

from chat import history, personal
from chat.actions import Draft
from chat.errors import StillWriting
from chat.models import Assistant, Conversation, Message, MessageStatus, Role, Schedule
from chat.rights import Rights
from chat.setup import Setup
from chat.sources import MAX_PICKED, NOTHING, Picked, picked_of
from retrieval.models import Collection


def draft_of(rights: Rights, row: Schedule, client_id: str) -> Draft:
    """Raises StillWriting: `answers.send` would count a request first."""
    chat = _chat_of(row)
    path = history.shown_branch(history.all_messages(chat)) if chat else []
    last = _last_answer(path)
    if last and last.status == MessageStatus.RUNNING:
        raise StillWriting
    assistant = _assistant(row)
    return Draft(
        client_id=client_id,
        text=row.text,
        model=row.model or _usual_model(rights, chat, assistant),
        conversation_id=chat.pk if chat else None,
        parent_id=last.pk if last else None,
        tools=rights.tools,
        setup=Setup(assistant_id=row.assistant_id),
        picked=_picked(row, path, assistant),
    )


def _chat_of(row: Schedule) -> Conversation | None:
    """The one that it goes on in. None: it begins one, the first time, and where its chat is gone."""
    if not row.is_one_chat or row.conversation_id is None:
        return None
    rows = Conversation.objects.filter(pk=row.conversation_id, owner_id=row.owner_id)
    return rows.filter(deleted_at=None).first()


def _last_answer(path: Sequence[Message]) -> Message | None:
    """Behind a question that has no answer nothing can be asked."""
    return next((row for row in reversed(path) if row.role == Role.ASSISTANT), None)


def _usual_model(rights: Rights, chat: Conversation | None, assistant: Assistant | None) -> str:
    """As a page has it chosen where nobody chooses: the chat's, the assistant's, or the owner's usual
    one, of those that there are."""
    usual = personal.personalisation_of(rights.user).default_model
    begins_as = "" if chat or assistant is None else assistant.model
    wanted = (chat.model if chat else "", begins_as, usual)
    known = {state.spec.name for state in rights.models("chat")}
    return next((name for name in wanted if name in known), rights.default_model())


def _assistant(row: Schedule) -> Assistant | None:
    """A missing one is refused when the chat is set up."""
    return Assistant.objects.filter(pk=row.assistant_id).first() if row.assistant_id else None


def _picked(row: Schedule, path: Sequence[Message], assistant: Assistant | None) -> Picked:
    """What its assistant answers from, and what it was answered from the last time; the first time in a
    chat, what the question before was. As far as its owner may read it."""
    asked = [message for message in path if message.role == Role.USER]
    own = [message for message in asked if (message.client_id or "").startswith(row.pk.hex)]
    before = picked_of((own or asked)[-1].sources).collections if asked else ()
    wanted = dict.fromkeys([*(assistant.collections if assistant else ()), *before])
    readable = set(Collection.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    found = tuple(id_ for id_ in wanted if id_ in readable)[:MAX_PICKED]
    return Picked(found) if found else NOTHING
