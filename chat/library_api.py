"""REST of the library under /api: lists of chats, what becomes of them, folders and tags."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema, Status

from chat import access, delete_all, history, library, notices, runs, values
from chat.db import in_db
from chat.library import Change, Outcome
from chat.models import Conversation
from chat.values import Value

router = Router()

TOLD_ONE_BY_ONE = 10
MAX_PINNED = 200


class ChatChange(Schema):
    """What is left out stays. `version` is the one that you saw; a newer one refuses the change."""

    title: str | None = None
    folder: UUID | None = None
    tags: list[str] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    unread: bool | None = None
    deleted: bool | None = None
    version: int | None = None

    def values(self) -> dict[str, Any]:
        """Only what was given; null takes a chat out of its folder and changes nothing else."""
        given = self.model_dump(exclude_unset=True, exclude={"version", "id"})
        return {k: v for k, v in given.items() if v is not None or k == "folder"}


class NumberedChange(ChatChange):
    id: UUID


class Changes(Schema):
    changes: list[NumberedChange]


class DeleteAll(Schema):
    """`confirm` has to be the words "delete all chats"."""

    confirm: str


class FolderName(Schema):
    name: str
    version: int | None = None


# --- lists --------------------------------------------------------------------------------------


@router.get("/sidebar")
async def show_sidebar(request: HttpRequest) -> dict[str, Any]:
    """Pinned chats, folders, and the first page of those that are in neither."""
    return await in_db(sidebar)(request.user)


@router.get("/conversations")
async def list_conversations(
    request: HttpRequest,
    cursor: str = "",
    folder: str = "",
    pinned: bool | None = None,
    archived: bool | None = None,
) -> dict[str, Any]:
    """The newest first, 40 a page; `next` is the cursor of the page behind, or null.

    `folder` is an id, or `none` for chats without one.
    """
    return await in_db(_page)(request.user, cursor, folder, pinned, archived)


@router.get("/tags")
async def list_tags(request: HttpRequest) -> dict[str, Any]:
    """Every tag that one of your chats has."""
    return {"tags": await in_db(library.tags_of)(request.user)}


@router.get("/conversations/{conversation_id}")
async def show_conversation(request: HttpRequest, conversation_id: str) -> dict[str, Any]:
    """A conversation with all messages of its tree, oldest first."""
    return await in_db(whole)(request.user, conversation_id)


# --- changes ------------------------------------------------------------------------------------


@router.patch("/conversations/{conversation_id}")
async def change_conversation(
    request: HttpRequest, conversation_id: str, data: ChatChange
) -> dict[str, Any]:
    """Give a chat another title, move, tag, pin or archive it."""
    given = data.values()
    given.pop("deleted", None)
    row = await in_db(library.change)(request.user, conversation_id, given, data.version)
    await notices.conversation_changed(request.user.pk, row.pk)
    return {"conversation": await in_db(values.conversation_summary)(row)}


@router.patch("/conversations")
async def change_conversations(request: HttpRequest, data: Changes) -> dict[str, Any]:
    """Change up to 500 chats; `deleted: false` brings one back within ten minutes.

    Each by itself: `refused` tells which were not changed, and why.
    """
    changes = [Change(item.id, item.values(), item.version) for item in data.changes]
    outcome = await in_db(library.change_all)(request.user, changes)
    await _after(request.user, outcome)
    return {
        "conversations": await in_db(values.conversation_summaries)(outcome.changed),
        "deleted": [str(id) for id in outcome.deleted],
        "refused": [
            {"id": str(id), "code": error.code, "message": str(error)}
            for id, error in outcome.refused.items()
        ],
    }


@router.delete("/conversations/{conversation_id}", response={204: None})
async def delete_conversation(request: HttpRequest, conversation_id: str) -> Status[None]:
    """Delete a chat with all of its messages. Answers being written are stopped.

    For ten minutes `PATCH /api/conversations` can bring it back; then it is gone.
    """
    id = access.as_uuid(conversation_id)
    outcome = await in_db(library.change_all)(request.user, [Change(id, {"deleted": True})])
    for error in outcome.refused.values():
        raise error
    await _after(request.user, outcome)
    return Status(204, None)


@router.delete("/conversations", response=dict[str, int])
async def delete_all_conversations(request: HttpRequest, data: DeleteAll) -> dict[str, int]:
    """Delete up to 100 of your chats for good, with their links: `{deleted, remaining}`.

    Call it until nothing remains. Answers being written are stopped.
    """
    delete_all.check_words(data.confirm)
    for run in runs.active():
        if run.user_id == request.user.pk:
            run.stop(None)
    deleted, remaining = await in_db(delete_all.delete_portion)(request.user)
    for id in deleted:
        await notices.conversation_deleted(request.user.pk, id)
    return {"deleted": len(deleted), "remaining": remaining}


async def _after(user: Any, outcome: Outcome) -> None:
    """Stop what writes to deleted chats, and tell the user's tabs."""
    for run in runs.active():
        if run.conversation_id in outcome.deleted:
            run.stop(None)
    for id in outcome.deleted:
        await notices.conversation_deleted(user.pk, id)
    if len(outcome.changed) > TOLD_ONE_BY_ONE:
        await notices.library_changed(user.pk)
    else:
        for row in outcome.changed:
            await notices.conversation_changed(user.pk, row.pk)


# --- folders ------------------------------------------------------------------------------------


@router.get("/folders")
async def list_folders(request: HttpRequest) -> dict[str, Any]:
    """Your folders by name."""
    rows = await in_db(library.folders_of)(request.user)
    return {"folders": [values.folder_value(row) for row in rows]}


@router.post("/folders", response={201: dict[str, Any]})
async def create_folder(request: HttpRequest, data: FolderName) -> Status[dict[str, Any]]:
    row = await in_db(library.create_folder)(request.user, data.name)
    await notices.library_changed(request.user.pk)
    return Status(201, {"folder": values.folder_value(row)})


@router.patch("/folders/{folder_id}")
async def rename_folder(request: HttpRequest, folder_id: str, data: FolderName) -> dict[str, Any]:
    row = await in_db(library.rename_folder)(request.user, folder_id, data.name, data.version)
    await notices.library_changed(request.user.pk)
    return {"folder": values.folder_value(row)}


@router.delete("/folders/{folder_id}", response={204: None})
async def delete_folder(request: HttpRequest, folder_id: str) -> Status[None]:
    """Delete a folder; its chats stay, without one."""
    await in_db(library.delete_folder)(request.user, folder_id)
    await notices.library_changed(request.user.pk)
    return Status(204, None)


# --- reading ------------------------------------------------------------------------------------


def sidebar(user: Any) -> dict[str, Any]:
    """What the sidebar shows first. One query for each of its parts."""
    kept = access.conversations_of(user).filter(archived_at=None)
    pinned = list(kept.filter(pinned_at__isnull=False).order_by("-pinned_at")[:MAX_PINNED])
    loose = history.conversation_page(user, rows=kept.filter(pinned_at=None, folder=None))
    shown = values.conversation_summaries([*pinned, *loose.conversations])
    return {
        "pinned": shown[: len(pinned)],
        "folders": [values.folder_value(row) for row in library.folders_of(user)],
        "items": shown[len(pinned) :],
        "next": loose.next_cursor,
    }


def _page(
    user: Any, cursor: str, folder: str, pinned: bool | None, archived: bool | None
) -> dict[str, Any]:
    rows = _in_folder(access.conversations_of(user), folder)
    if pinned is not None:
        rows = rows.filter(pinned_at__isnull=not pinned)
    if archived is not None:
        rows = rows.filter(archived_at__isnull=not archived)
    page = history.conversation_page(user, cursor, rows=rows)
    items: Sequence[Value] = values.conversation_summaries(page.conversations)
    return {"items": items, "next": page.next_cursor}


def whole(user: Any, conversation_id: object) -> dict[str, Any]:
    row = access.conversation_for(user, conversation_id)
    return {
        "conversation": values.conversation_summary(row),
        "messages": values.message_values(history.all_messages(row)),
    }


def _in_folder(rows: QuerySet[Conversation], folder: str) -> QuerySet[Conversation]:
    if not folder:
        return rows
    return rows.filter(folder=None if folder == "none" else access.as_uuid(folder, "folder"))
