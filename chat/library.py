"""Keeping chats in order: titles, folders, pins, tags, the archive, and deletion with a way back.

None of it moves a chat in a list by time: only what is said in it does.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext

from chat import access, attached_files, run_log
from chat.errors import BadChange, ChatError, Conflict, NotFound
from chat.models import Conversation, Folder, Generation, Message
from chat.storable import is_storable

MAX_CHANGES = 500
MAX_FOLDERS = 200
MAX_TAGS = 20
MAX_TAG_CHARS = 40

_FLAGS = {
    "pinned": "pinned_at",
    "archived": "archived_at",
    "unread": "unread_at",
    "deleted": "deleted_at",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a chat: any of `title`, `folder` (an id or None), `tags`, `pinned`, `archived`,
    `unread` and `deleted`. With `version`, only if the chat is still the one that was seen."""

    conversation_id: UUID
    values: dict[str, Any]
    version: int | None = None


@dataclass(slots=True)
class Outcome:
    """What `change_all` did: chats as they are now, and for the others the reason."""

    changed: list[Conversation] = field(default_factory=list)
    deleted: list[UUID] = field(default_factory=list)
    refused: dict[UUID, ChatError] = field(default_factory=dict)


def change(user: Any, conversation_id: object, values: dict[str, Any], version: int | None) -> Any:
    """Change one chat; the chat as it is now. Raises NotFound, Conflict, BadChange."""
    outcome = change_all(user, [Change(access.as_uuid(conversation_id), values, version)])
    for error in outcome.refused.values():
        raise error
    return outcome.changed[0] if outcome.changed else None


def change_all(user: Any, changes: Sequence[Change]) -> Outcome:
    """Change many chats, each by itself: one that cannot be changed keeps no other from it."""
    if len(changes) > MAX_CHANGES:
        text = gettext("At most %(n)s chats are changed at a time.")
        raise BadChange(text % {"n": MAX_CHANGES})
    outcome = Outcome()
    with transaction.atomic():
        access.show_deleted(any("deleted" in change.values for change in changes))
        ids = sorted({change.conversation_id for change in changes})
        rows = Conversation.objects.filter(owner_id=user.pk, pk__in=ids)
        found = {row.pk: row for row in rows.order_by("pk").select_for_update(no_key=True)}
        folders = set(Folder.objects.filter(owner_id=user.pk).values_list("pk", flat=True))
        for change in changes:
            try:
                row = _changed(found.get(change.conversation_id), change, folders)
            except ChatError as error:
                outcome.refused[change.conversation_id] = error
            else:
                (outcome.deleted.append(row.pk) if row.deleted_at else outcome.changed.append(row))
        if outcome.deleted:  # brought back, they show what was written by now
            run_log.request_stops(Generation.objects.filter(conversation__in=outcome.deleted))
        access.show_deleted(False)
    return outcome


def purge(deleted_before: datetime, limit: int = 200) -> int:
    """Let go of chats that were deleted before, with what was attached in them. Needs the system's
    scope. Returns how many went."""
    rows = Conversation.objects.filter(deleted_at__lt=deleted_before).order_by("deleted_at")
    ids = list(rows.values_list("pk", flat=True)[:limit])
    named: set[UUID] = set()
    for conversation_id in ids:
        with transaction.atomic():
            locked = Conversation.objects.select_for_update(no_key=True)
            row = locked.filter(pk=conversation_id).first()
            if row is not None and row.deleted_at and row.deleted_at < deleted_before:
                # The writers of its answers wait, and find nothing to write to. An event that came
                # between the deletion of the events and that of its run would make it all fail.
                run_log.give_up(row.generations.all())
                named |= attached_files.named_by(Message.with_deleted.filter(conversation=row))
                row.delete()
    attached_files.drop_unnamed(named)
    return len(ids)


def _changed(row: Conversation | None, change: Change, folders: set[UUID]) -> Conversation:
    if row is None or (row.deleted_at and change.values.get("deleted") is not False):
        raise NotFound("conversation")
    if change.version is not None and change.version != row.version:
        raise Conflict(gettext("The conversation was changed elsewhere."))
    fields = {"version"}
    for name, value in change.values.items():
        fields |= _set(row, name, value, folders)
    row.version += int(change.values.keys() != {"unread"})
    row.save(update_fields=fields)
    return row


def mark_unread(conversation_id: UUID) -> None:
    """An answer has ended in it that nobody saw."""
    rows = Conversation.objects.filter(pk=conversation_id, unread_at=None)
    rows.update(unread_at=timezone.now())


def _set(row: Conversation, name: str, value: Any, folders: set[UUID]) -> set[str]:
    """Set one thing; the names of the columns that it changed."""
    if name == "title":
        row.title, row.title_by_hand = _title(value), True
        return {"title", "title_by_hand"}
    if name == "folder":
        if value is not None and value not in folders:
            raise NotFound("folder")
        row.folder_id = value
        return {"folder_id"}
    if name == "tags":
        row.tags = _tags(value)
        return {"tags"}
    if name in _FLAGS:
        if value is not (getattr(row, _FLAGS[name]) is not None):
            setattr(row, _FLAGS[name], timezone.now() if value else None)
        return {_FLAGS[name]}
    raise BadChange(f"A chat has no {name} to change.")


def _title(text: str) -> str:
    title = _line(text, "The title")
    if not 0 < len(title) <= 200:
        raise BadChange(gettext("A title has 1 to 200 characters."))
    return title


def _tags(tags: Iterable[str]) -> list[str]:
    """Small letters, each once, in the order given."""
    cleaned = list(dict.fromkeys(_line(tag, "The tag").lower() for tag in tags))
    if len(cleaned) > MAX_TAGS:
        text = gettext("A chat has at most %(n)s tags.")
        raise BadChange(text % {"n": MAX_TAGS})
    if any(not 0 < len(tag) <= MAX_TAG_CHARS or '"' in tag for tag in cleaned):
        text = gettext("A tag has 1 to %(n)s characters and no quotation mark.")
        raise BadChange(text % {"n": MAX_TAG_CHARS})
    return cleaned


def _line(text: str, what: str) -> str:
    if not is_storable(text):
        raise BadChange(f"{what} holds a character that cannot be stored.")
    return " ".join(text.split())


# --- folders ------------------------------------------------------------------------------------


def folders_of(user: Any) -> list[Folder]:
    """All folders of a user, by name."""
    rows = Folder.objects.filter(owner_id=user.pk)
    return sorted(rows, key=lambda folder: (folder.name.casefold(), folder.pk))


def tags_of(user: Any) -> list[str]:
    """Every tag in use, by name. One query."""
    rows = access.conversations_of(user).exclude(tags=[]).order_by()
    return sorted({tag for tags in rows.values_list("tags", flat=True) for tag in tags})


def create_folder(user: Any, name: str) -> Folder:
    """Raises BadChange; Conflict when there is one of that name."""
    if Folder.objects.filter(owner_id=user.pk).count() >= MAX_FOLDERS:
        text = gettext("There are at most %(n)s folders.")
        raise BadChange(text % {"n": MAX_FOLDERS})
    with _one_of_a_name(), transaction.atomic():
        return Folder.objects.create(owner_id=user.pk, name=_folder_name(name))


def rename_folder(user: Any, folder_id: object, name: str, version: int | None) -> Folder:
    """Raises NotFound, BadChange; Conflict when it was changed elsewhere or the name is taken."""
    with _one_of_a_name(), transaction.atomic():
        folder = _folder_for(user, folder_id)
        if version is not None and version != folder.version:
            raise Conflict(gettext("The folder was changed elsewhere."))
        folder.name, folder.version = _folder_name(name), folder.version + 1
        folder.save(update_fields=["name", "version"])
    return folder


def delete_folder(user: Any, folder_id: object) -> None:
    """Its chats stay, without a folder. Raises NotFound."""
    with access.seeing_deleted():  # those in it that may come back
        _folder_for(user, folder_id).delete()


def _folder_for(user: Any, folder_id: object) -> Folder:
    rows = Folder.objects.filter(owner_id=user.pk, pk=access.as_uuid(folder_id, "folder"))
    folder = rows.select_for_update().first()
    if folder is None:
        raise NotFound("folder")
    return folder


def _folder_name(text: str) -> str:
    name = _line(text, "The name")
    if not 0 < len(name) <= 80 or '"' in name:
        raise BadChange(gettext("A folder's name has 1 to 80 characters and no quotation mark."))
    return name


@contextmanager
def _one_of_a_name() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        if "folder_name_once_per_owner" not in str(error):
            raise
        raise Conflict(gettext("There is a folder of that name already.")) from None
