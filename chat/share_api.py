"""REST of share links, under /api/shares."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status

from chat import access, sharing
from chat.db import in_db
from chat.models import ShareKind
from chat.values import Value

router = Router()


class NewShare(Schema):
    """The branch from the first message to `message`, an answer.

    `kind`: `snapshot`, or `live` to go on with what follows. `with_steps` adds thinking and tools.
    """

    conversation: UUID
    message: UUID
    kind: str = ShareKind.SNAPSHOT
    with_steps: bool = False
    with_name: bool = False
    expires_in_days: int | None = None


@router.get("")
async def list_shares(
    request: HttpRequest, conversation: str | None = None, before: str = ""
) -> dict[str, Any]:
    """Your links that still open, newest first, 50 a page; `next` goes into `before`, or is null."""
    return await in_db(_page)(request.user, conversation, before)


@router.post("", response={201: dict[str, Any]})
async def create_share(request: HttpRequest, data: NewShare) -> Status[dict[str, Any]]:
    """Make a link to a branch."""
    wish = sharing.ShareWish(
        conversation_id=data.conversation,
        message_id=data.message,
        kind=data.kind,
        with_steps=data.with_steps,
        with_name=data.with_name,
        expires_in_days=data.expires_in_days,
    )
    return Status(201, {"share": await in_db(_create)(request.user, wish)})


@router.delete("/{share_id}", response={204: None})
async def revoke_share(request: HttpRequest, share_id: str) -> Status[None]:
    """The link opens nothing any more."""
    await in_db(sharing.revoke)(request.user, share_id)
    return Status(204, None)


@router.delete("", response=dict[str, int])
async def revoke_all_shares(request: HttpRequest) -> dict[str, int]:
    """Revoke every link of yours; `revoked` counts them."""
    return {"revoked": await in_db(sharing.revoke_all)(request.user)}


def _create(user: Any, wish: sharing.ShareWish) -> Value:
    return sharing.share_value(sharing.create(user, wish))


def _page(user: Any, conversation: str | None, before: str) -> dict[str, Any]:
    rows = sharing.shares_of(user, conversation)
    if before:
        rows = rows.filter(pk__lt=access.as_uuid(before, "link"))
    page = list(rows[: sharing.PAGE_SIZE + 1])
    shown = page[: sharing.PAGE_SIZE]
    return {
        "items": [sharing.share_value(row) for row in shown],
        "next": str(shown[-1].pk) if len(page) > len(shown) else None,
    }
