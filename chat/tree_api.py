"""What changes the tree without a new answer, under /api."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from chat import access, library_api, notices, runs, temporary, tree, values
from chat.db import in_db
from chat.frames import checked_client_id
from chat.models import Conversation
from chat.rights import rights_of
from chat.setup import SetupIn

router = Router()


class Seen(Schema):
    """`version` is the conversation's that you saw; a newer one on the server refuses the change."""

    version: int | None = None


class NewText(Schema):
    text: str
    client_id: str


class NewBranch(Schema):
    client_id: str


class Restore(Schema):
    deletion: str


class Kept(SetupIn):
    """All messages of a temporary chat, as its page holds them."""

    client_id: str
    model: str
    messages: list[Any]


@router.post("/temporary/keep", response={201: dict[str, Any]})
async def keep_temporary(request: HttpRequest, data: Kept) -> Status[dict[str, Any]]:
    """Make a chat like any other of a temporary one."""
    rights_of(request).require_model(data.model)
    setup = data.as_setup()
    row = await in_db(temporary.keep)(
        request.user,
        checked_client_id(data.client_id),
        data.model,
        temporary.said_of(data.messages),
        setup,
    )
    return Status(201, await _changed(request.user, row, with_messages=True))


@router.post("/messages/{message_id}/choose")
async def choose_branch(request: HttpRequest, message_id: str, data: Seen) -> dict[str, Any]:
    """Show the branch that leads to this message, here and on every other device."""
    row = await in_db(tree.choose)(request.user, message_id, data.version)
    return await _changed(request.user, row)


@router.post("/messages/{message_id}/edit")
async def edit_answer(request: HttpRequest, message_id: str, data: NewText) -> dict[str, Any]:
    """Write another text beside an answer. The answer stays as it is."""
    client_id = checked_client_id(data.client_id)
    row = await in_db(tree.edit_answer)(request.user, message_id, data.text, client_id)
    message = await in_db(values.message_value)(row)
    return {**await _changed(request.user, row.conversation), "message": message}


@router.delete("/messages/{message_id}")
async def delete_message(
    request: HttpRequest, message_id: str, deletion: str, replies: bool, version: int | None = None
) -> dict[str, Any]:
    """Delete a message, with the replies below it or leaving its place to them.

    `deletion` is an id of yours: for the undo, and so that a repetition does no harm.
    """
    deleted = await in_db(tree.delete)(
        request.user,
        message_id,
        checked_client_id(deletion, "deletion"),
        with_replies=replies,
        version=version,
    )
    for run_id in deleted.run_ids:
        if run := runs.get(run_id):
            run.stop(None)
    return await _changed(request.user, deleted.conversation, with_messages=True)


@router.post("/conversations/{conversation_id}/messages/restore")
async def restore_messages(
    request: HttpRequest, conversation_id: str, data: Restore
) -> dict[str, Any]:
    """Undo a deletion; possible for some minutes."""
    row = await in_db(tree.restore)(request.user, conversation_id, data.deletion)
    return await _changed(request.user, row, with_messages=True)


@router.post("/messages/{message_id}/branch-off", response={201: dict[str, Any]})
async def branch_off(
    request: HttpRequest, message_id: str, data: NewBranch
) -> Status[dict[str, Any]]:
    """A new chat that begins with all messages up to this one."""
    client_id = checked_client_id(data.client_id)
    row = await in_db(tree.branch_off)(request.user, message_id, client_id)
    return Status(201, await _changed(request.user, row))


async def _changed(
    user: Any, conversation: Conversation, *, with_messages: bool = False
) -> dict[str, Any]:
    """The conversation after the change, which every tab hears of."""
    await notices.conversation_changed(user.pk, conversation.pk)
    read = library_api.whole if with_messages else _summary
    return await in_db(read)(user, conversation.pk)


def _summary(user: Any, conversation_id: object) -> dict[str, Any]:
    row = access.conversation_for(user, conversation_id)
    return {"conversation": values.conversation_summary(row)}
