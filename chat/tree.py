"""What may be done to the tree of a conversation, each in one transaction.

Nothing here overwrites what somebody wrote: edits are siblings, and what is deleted waits for its undo.
Who shows an older version of the conversation than the one that is there is told so, where a change
could concern messages that they have not seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat import access, attached_files, branches, run_log
from chat.actions import check_version, checked_text, choose_path, touch
from chat.answer_rows import message_once, user_now
from chat.errors import BadFrame, NotFound, StillWriting
from chat.models import (
    Conversation,
    Generation,
    Message,
    MessageStatus,
    Role,
    Summary,
)
from chat.sources import picked_of

_COPIED = (
    "role",
    "status",
    "text",
    "parts",
    "model",
    "finish_reason",
    "sources",
    "found",
    "from_cache",
    "error",
    "usage",
    "timings",
    "is_pinned",
    "edited",
    "brought",
    "resumed",
)
_SETUP = (
    "model",
    "system_prompt",
    "instructions",
    "memory",
    "remembers",
    "parameters",
    "assistant",
    "history_strategy",
    "tool_servers",
    "folder",
)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion took: the messages, and the runs that were still writing some of them."""

    conversation: Conversation
    message_ids: list[UUID]
    run_ids: list[UUID]


def choose(user: Any, message_id: object, version: int | None) -> Conversation:
    """Show the branch that leads to a message. Raises NotFound or Conflict."""
    with transaction.atomic():
        conversation, message = _locked(user, message_id, with_deleted=True)
        check_version(conversation, version)
        if choose_path(conversation, message.pk, version=conversation.version + 1):
            # Not touched: looking at another branch moves no chat to the top of the list.
            conversation.version += 1
            conversation.save(update_fields=["version"])
    return conversation


def edit_answer(user: Any, message_id: object, text: str, client_id: str) -> Message:
    """Write another text beside an answer. The same client id again is the same message."""
    text = checked_text(text)
    with transaction.atomic():
        now = user_now(user)
        made = message_once(now, client_id)
        if made is not None:
            return made
        conversation, answer = _locked(now, message_id)
        if answer.role != Role.ASSISTANT:
            raise BadFrame("Only answers are edited like this; send an edited question anew.")
        if answer.status == MessageStatus.RUNNING:
            raise StillWriting
        touch(conversation)
        choose_path(conversation, answer.parent_id, version=conversation.version)
        return Message.objects.create(
            conversation=conversation,
            parent_id=answer.parent_id,
            role=Role.ASSISTANT,
            text=text,
            parts=[{"type": "text", "text": text}],
            client_id=client_id,
            model=answer.model,
            finish_reason="stop",
            chosen=conversation.version,
            edited=True,
        )


def delete(
    user: Any, message_id: object, deletion: str, *, with_replies: bool, version: int | None
) -> Deleted:
    """Hide a message, with the replies below it or leaving its place to them.

    `deletion` names it for `restore`; the same one again finds what it did before. Answers that are
    still being written are stopped. Raises NotFound or Conflict.
    """
    with transaction.atomic():
        conversation, message = _locked(user, message_id, with_deleted=True)
        in_chat = Message.with_deleted.filter(conversation=conversation)
        rows = list(in_chat.only("parent", "deletion", "deleted_at"))  # no texts
        if message.deleted_at is None:
            check_version(conversation, version)
            replies = branches.below(rows, message.pk) if with_replies else []
            ids = [row.pk for row in [message, *replies] if row.deleted_at is None]
        elif message.deletion != deletion:
            raise NotFound("message")
        else:
            ids = [row.pk for row in rows if row.deletion == deletion]
        run_ids = run_log.request_stops(Generation.objects.filter(message__in=ids))
        if message.deleted_at is None:
            Message.objects.filter(pk__in=ids).update(deletion=deletion, deleted_at=timezone.now())
            later = [row.pk for row in branches.below(rows, message.pk)]
            Summary.objects.filter(until__in=later).delete()  # it may tell what is gone
            touch(conversation)
    return Deleted(conversation, ids, run_ids)


def restore(user: Any, conversation_id: object, deletion: str) -> Conversation:
    """Undo a deletion. Twice does no harm. Raises NotFound when it is purged, or never was."""
    with transaction.atomic():
        conversation = access.conversation_for(user, conversation_id, lock=True)
        rows = Message.with_deleted.filter(conversation=conversation, deletion=deletion)
        if not deletion or not rows.exists():
            raise NotFound("deletion")
        if rows.filter(deleted_at__isnull=False).update(deleted_at=None):
            touch(conversation)
    return conversation


def branch_off(user: Any, message_id: object, client_id: str) -> Conversation:
    """A new chat that begins with the messages up to this one. Raises NotFound or Conflict."""
    with transaction.atomic():
        now = user_now(user)
        made = message_once(now, client_id)
        if made is not None:
            return made.conversation
        conversation, message = _locked(now, message_id)
        rows = Message.with_deleted.filter(conversation=conversation).order_by("created_at", "id")
        path = branches.path_to(rows, message.pk)
        if any(row.status == MessageStatus.RUNNING for row in path):
            raise StillWriting
        branch = Conversation.objects.create(
            owner=now,
            title=f"Branch of {conversation.title}"[:200],
            title_by_hand=True,
            **{name: getattr(conversation, name) for name in _SETUP},
        )
        _copy(path, branch, client_id)
    return branch


def _copy(path: list[Message], branch: Conversation, client_id: str) -> None:
    """One row after the other: `created_at` is their order."""
    parent: Message | None = None
    for row in path:
        if row.deleted_at is None:
            values = {name: getattr(row, name) for name in _COPIED}
        else:  # its place, and nothing of what it said
            values = {"role": row.role, "deleted_at": row.deleted_at}
        parent = Message.with_deleted.create(
            conversation=branch,
            parent=parent,
            client_id=client_id if parent is None else None,
            chosen=branch.version,
            **values,
        )


def purge(deleted_before: datetime, limit: int = 500) -> int:
    """Drop for good what was deleted before, in up to `limit` conversations; returns how many had some.

    A message that keeps its place for the replies below it loses all that it said.
    """
    old = Message.with_deleted.filter(deleted_at__lt=deleted_before).exclude(deletion="")
    conversation_ids = list(old.values_list("conversation", flat=True).distinct()[:limit])
    named: set[UUID] = set()
    for conversation_id in conversation_ids:
        named |= _purge_in(conversation_id, deleted_before)
    attached_files.drop_unnamed(named)  # once: it looks through all that messages name
    return len(conversation_ids)


def _purge_in(conversation_id: UUID, deleted_before: datetime) -> set[UUID]:
    """The documents that were named by what went."""
    with transaction.atomic():
        # Nobody replies to what goes while it goes.
        locked = Conversation.objects.select_for_update(no_key=True)
        if not locked.filter(pk=conversation_id).exists():
            return set()
        rows = list(Message.with_deleted.filter(conversation=conversation_id))
        kept = {row.pk for row in branches.visible(rows, deleted_before=deleted_before)}
        old = [row for row in rows if row.deleted_at and row.deleted_at < deleted_before]
        named = {id_ for row in old for id_ in picked_of(row.sources).documents}
        Message.with_deleted.filter(pk__in=[row.pk for row in old if row.pk not in kept]).delete()
        places = [row.pk for row in old if row.pk in kept]
        Generation.objects.filter(message__in=places).delete()  # its turns hold what was written
        Message.with_deleted.filter(pk__in=places).update(deletion="", **branches.UNSAID)
    return named


def _locked(
    user: Any, message_id: object, *, with_deleted: bool = False
) -> tuple[Conversation, Message]:
    """A message as of now, and its conversation, which nobody else changes meanwhile."""
    found = access.message_for(user, message_id, with_deleted=with_deleted)
    conversation = access.conversation_for(user, found.conversation_id, lock=True)
    return conversation, access.message_for(user, message_id, with_deleted=with_deleted)
