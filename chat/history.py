"""Reads: pages of conversations, and the branch of a tree that leads to a message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from chat import access, branches, personal, prompt, prompt_plan
from chat.branches import SHOWN_TO_MODELS
from chat.errors import BadCursor, NotFound
from chat.events import Found, LeftOut
from chat.looking_up import passages_of
from chat.models import (
    Conversation,
    HistoryStrategy,
    Message,
    Role,
    Summary,
)
from chat.prompt_plan import Exchange, PromptPlan
from chat.sources import picked_of
from inference import ChatMessage
from retrieval.excerpts import Excerpt, texts_of

PAGE_SIZE = 40
DELETED = "(This message was deleted.)"


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Some of a user's conversations, newest first; the cursor leads to the page behind."""

    conversations: list[Conversation]
    next_cursor: str | None


def conversation_page(
    user: Any, cursor: str = "", *, rows: QuerySet[Conversation] | None = None
) -> ConversationPage:
    """The page behind a cursor, from the newest on without one; of all chats or of `rows`.

    Raises BadCursor.
    """
    if rows is None:
        rows = access.conversations_of(user)
    if cursor:
        updated_at, last_id = _read_cursor(cursor)
        # The id decides between conversations that were changed in the same moment. The first
        # condition says nothing new: it lets the index begin there.
        rows = rows.filter(updated_at__lte=updated_at).filter(
            Q(updated_at__lt=updated_at) | Q(id__lt=last_id)
        )
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
    """Every message of the tree that is seen, oldest first. One query."""
    rows = Message.with_deleted.filter(conversation=conversation).order_by("created_at", "id")
    return branches.visible(rows)


def messages_of(conversations: Iterable[Conversation]) -> dict[UUID, list[Message]]:
    """`all_messages` of many conversations in one query; of deleted ones that keep a place it says so
    where their text was."""
    found: dict[UUID, list[Message]] = {row.pk: [] for row in conversations}
    rows = Message.with_deleted.filter(conversation__in=found).order_by("created_at", "id")
    for row in branches.visible(rows):
        if row.deleted_at:
            row.text, row.parts = DELETED, [{"type": "text", "text": DELETED}]
        found[row.conversation_id].append(row)
    return found


def shown_branch(messages: list[Message]) -> list[Message]:
    """The branch that a page shows; `messages` are all of the tree, oldest first."""
    return branches.chosen_path(messages)


def branch_to(conversation: Conversation, message_id: UUID | None) -> list[Message]:
    """The messages from the root to `message_id`, oldest first. One query."""
    return branches.path_to(all_messages(conversation), message_id)


def branch_through(messages: list[Message], message_id: UUID | None) -> list[Message]:
    """The branch with a message in it; the one that a page shows without it."""
    return branches.chosen_path(messages, through=message_id)


def as_chat(conversation: Conversation, message_id: UUID | None) -> list[ChatMessage]:
    """The chat up to and including a message, system message first, nothing left out."""
    return plan_of(conversation, message_id).messages()


def plan_of(
    conversation: Conversation, message_id: UUID | None, model: str | None = None
) -> PromptPlan:
    """The prompt for an answer to a message. It shows what the model was shown for its answer before:
    that is in its cache. Another model may have room for more; without one nothing is left out."""
    return plan_on(conversation, branch_to(conversation, message_id), model)


def plan_on(
    conversation: Conversation, path: Sequence[Message], model: str | None = None
) -> PromptPlan:
    """The same, of the messages from the root to the one to be answered."""
    rows = Summary.objects.filter(conversation=conversation).order_by("created_at")
    return plan_along(conversation, path, rows, model)


def plan_along(
    conversation: Conversation,
    path: Sequence[Message],
    summaries: Iterable[Summary] = (),
    model: str | None = None,
) -> PromptPlan:
    """The same, with summaries that are at hand."""
    summaries = _readable(list(summaries), path)
    plan = PromptPlan(
        exchanges=exchanges_of(path, documents_along(path)),
        system=system_text(conversation),
        is_system_brought=personal.is_setup_of_others(conversation),
        memory=conversation.memory,
        keeps_first=conversation.history_strategy == HistoryStrategy.SELECTIVE,
        summaries=tuple(prompt_plan.Summary(str(s.pk), s.text, str(s.until_id)) for s in summaries),
    )
    told = [row.left_out for row in path if row.role == Role.ASSISTANT and row.model == model]
    return plan.showing(LeftOut(**told[-1])) if told and told[-1] else plan


def _readable(summaries: list[Summary], path: Sequence[Message]) -> list[Summary]:
    """Those that were not made of documents that may not be read any more: a summary repeats them."""
    places = {message.pk: place for place, message in enumerate(path)}
    if not any(one.until_id in places for one in summaries):
        return summaries
    gone = next((place for place, message in enumerate(path) if _is_unreadable(message)), len(path))
    return [one for one in summaries if places.get(one.until_id, 0) <= gone]


def _is_unreadable(message: Message) -> bool:
    values = message.found["excerpts"] if message.found else []
    return None in texts_of(map(Excerpt.from_json, values))


def system_text(conversation: Conversation) -> str:
    """The system prompt with the user's instructions behind it."""
    content = prompt.system_message(conversation.system_prompt)["content"]
    return "\n\n".join(text for text in (content, conversation.instructions) if text)


def documents_along(path: Iterable[Message]) -> dict[UUID, tuple[str, ...]]:
    """By answer the passages that it was written from, as far as they are there and may be read."""
    return {
        message.pk: passages_of(Found.from_kept(message.found))
        for message in path
        if message.found and message.status in SHOWN_TO_MODELS and not message.deleted_at
    }


def exchanges_of(
    path: Iterable[Message], documents: Mapping[UUID, tuple[str, ...]] | None = None
) -> tuple[Exchange, ...]:
    """Questions with their answers, and with what was found for them.

    Answers that failed or were refused are left out; a model would take them for its own words.
    The questions around such a gap become one: many templates insist on alternation.
    """
    exchanges: list[Exchange] = []
    for message in branches.let_through(list(path)):
        last = exchanges[-1] if exchanges else None
        if message.role == Role.USER and (last is None or last.reply):
            exchanges.append(
                Exchange(
                    str(message.pk),
                    question_of(message),
                    is_pinned=message.is_pinned,
                    is_brought=message.brought,
                    attached=attached_to(message),
                )
            )
            continue
        if last is None:
            continue
        changes: dict[str, Any] = {"num_messages": last.num_messages + 1}
        if message.is_pinned:
            changes["is_pinned"] = True
        if message.brought:
            changes["is_brought"] = True
        if message.role == Role.USER:
            changes["question"] = f"{last.question}\n\n{question_of(message)}"
            changes["questions"] = (*(last.questions or [last.question]), question_of(message))
            changes["attached"] = (*last.attached, *attached_to(message))
        elif message.status in SHOWN_TO_MODELS and not message.deleted_at:
            reply = prompt.assistant_messages(message.parts)
            changes["reply"] = (*last.reply, *reply)
            if message.edited or message.brought:
                changes["unjudged"] = (*last.unjudged, *reply)
            if documents and message.pk in documents:
                last = last.answered_from(documents[message.pk])
        exchanges[-1] = replace(last, **changes)
    return tuple(exchanges)


def attached_to(message: Message) -> tuple[UUID, ...]:
    """Documents that were picked for a question; none of a deleted one's."""
    return () if message.deleted_at else picked_of(message.sources).documents


def question_of(message: Message) -> str:
    """Of a deleted question its place stays: templates want one in front of each answer."""
    return DELETED if message.deleted_at else message.text


def summary_for(user: Any, summary_id: object) -> Summary:
    """Raises NotFound."""
    rows = Summary.objects.filter(conversation__owner_id=user.pk)
    row = rows.filter(pk=access.as_uuid(summary_id, "summary")).first()
    if row is None:
        raise NotFound("summary")
    return row
