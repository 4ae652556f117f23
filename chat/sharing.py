"""Share links: made, listed and revoked by the owner; read by whoever knows the token.

A token is a keyed hash of the share's id, and only its hash is stored: the owner can copy the link
again, and neither a copy of the database nor the id opens anything. Before the key is given up, the
token is stored, sealed with the one that comes after it (`resealed`). What a reader sees is decided by
the SQL function chat_read_share alone, in which unknown, revoked and expired tokens are one case.
"""

import json
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.dispatch import Signal
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from chat import access, made_pictures
from chat.actions import first_title
from chat.errors import BadRequest, Conflict, NotFound
from chat.ids import uuid7
from chat.models import Conversation, Message, MessageStatus, Role, Share, ShareKind
from chat.parts import Parts, text_of
from chat.sealing import Unreadable, seal, sealed_anew, secret_keys, unseal
from chat.tools import REMEMBER
from chat.values import Value
from retrieval.models import Version
from retrieval.system_rights import system_rights

PAGE_SIZE = 50
MAX_DAYS = 3650

link_made = Signal()
"""With `owner_id` and `kind`, for those who keep a trail."""
links_revoked = Signal()
"""With `owner_id` and `number`."""


@dataclass(frozen=True, slots=True)
class ShareWish:
    """What an owner wants to share: the branch up to `message_id`, and what of it."""

    conversation_id: UUID
    message_id: UUID
    kind: str = ShareKind.SNAPSHOT
    with_steps: bool = False
    with_name: bool = False
    expires_in_days: int | None = None


def create(user: Any, wish: ShareWish) -> Share:
    """Raises NotFound, BadRequest, or Conflict while the answer is being written."""
    if wish.kind not in ShareKind.values:
        raise BadRequest("A link is a snapshot or live.")
    days = wish.expires_in_days
    if days is not None and not 1 <= days <= MAX_DAYS:
        text = gettext("A link lasts 1 to %(n)s days, or for ever.")
        raise BadRequest(text % {"n": f"{MAX_DAYS:,}"})
    share_id = uuid7()
    with transaction.atomic():
        conversation = access.conversation_for(user, wish.conversation_id)
        message = _last_shared(conversation, wish.message_id)
        share = Share.objects.create(
            id=share_id,
            owner=user,
            conversation=conversation,
            message=message,
            kind=wish.kind,
            title=conversation.title,
            shown_name=str(user)[:120] if wish.with_name else "",
            with_steps=wish.with_steps,
            token_hash=_hash_of(_token(share_id, secret_keys()[0])),
            expires_at=None if days is None else timezone.now() + timedelta(days=days),
        )
    link_made.send(Share, owner_id=user.pk, kind=wish.kind)
    return share


def _last_shared(conversation: Conversation, message_id: UUID) -> Message:
    message = Message.objects.filter(conversation=conversation, pk=message_id).first()
    if message is None:
        raise NotFound("message")
    if message.role != Role.ASSISTANT:
        raise BadRequest("A shared branch ends with an answer.")
    if message.status == MessageStatus.RUNNING:
        raise Conflict(gettext("The answer is still being written."))
    return message


def shares_of(user: Any, conversation_id: object = None) -> QuerySet[Share]:
    """The user's links that still open, newest first."""
    rows = Share.objects.filter(owner_id=user.pk, message__deleted_at=None)
    rows = rows.exclude(expires_at__lte=timezone.now())
    if conversation_id is not None:
        rows = rows.filter(conversation=access.conversation_for(user, conversation_id))
    return rows.select_related("conversation").order_by("-id")


def revoke(user: Any, share_id: object) -> None:
    """Raises NotFound."""
    rows = Share.objects.filter(owner_id=user.pk, pk=access.as_uuid(share_id, "link"))
    if not rows.delete()[0]:
        raise NotFound("link")
    links_revoked.send(Share, owner_id=user.pk, number=1)


def revoke_all(user: Any) -> int:
    number = Share.objects.filter(owner_id=user.pk).delete()[0]
    if number:
        links_revoked.send(Share, owner_id=user.pk, number=number)
    return number


def share_value(share: Share) -> Value:
    """`url` is null for a link made under a SECRET_KEY that is not known any more: it opens, but cannot
    be shown again."""
    token = _token_of(share)
    return {
        "id": str(share.pk),
        "url": f"/s/{token}" if token else None,
        "conversation": str(share.conversation_id),
        "message": str(share.message_id),
        "kind": share.kind,
        "title": share.conversation.title if share.kind == ShareKind.LIVE else share.title,
        "with_steps": share.with_steps,
        "shown_name": share.shown_name,
        "created_at": share.created_at.isoformat(),
        "expires_at": share.expires_at.isoformat() if share.expires_at else None,
    }


def resealed(share: Share) -> str:
    """What `sealed_token` has to be for the present SECRET_KEY alone to show the link. Raises
    Unreadable."""
    present, *_ = secret_keys()
    if _is_of(share, _token(share.pk, present)):
        return share.sealed_token
    with suppress(Unreadable):
        if _is_of(share, unseal(share.sealed_token)):
            return sealed_anew(share.sealed_token)
    if token := _token_of(share):
        return seal(token)
    raise Unreadable


def read(token: str) -> Value:
    """What the link shows: kind, title, shown_name, created_at, with_steps and messages. Of steps
    pictures that were drawn are shown in any case. Raises NotFound.

    Works in anybody's scope, and in nobody's.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT chat_read_share(%s)::text", [_hash_of(token)])
        row = cursor.fetchone()
    if row is None or row[0] is None:
        raise NotFound("link")
    shown: Value = json.loads(row[0])
    for message in shown["messages"]:
        message["parts"] = _without_memories(message["parts"])
        if not shown["with_steps"]:
            message["parts"] = made_pictures.without_unmade(message["parts"])
        message["text"] = text_of(message["parts"])
    return _without_stopped(shown)


def pictures_in(token: str, shown: Value) -> set[UUID]:
    """Of the pictures that `shown`, read by the token, tells of those that are there. A chat that was
    brought along tells of what it likes: nothing but pictures of the link's owner is shown."""
    parts = [message["parts"] for message in shown["messages"]]
    if not any(map(made_pictures.made_in, parts)):
        return set()
    with system_rights():
        row = Share.objects.filter(token_hash=_hash_of(token)).first()
        return made_pictures.kept_of(row.owner_id, parts) if row else set()


def picture_in(token: str, picture_id: UUID) -> Version:
    """The file of a picture that the link shows. Raises NotFound."""
    if picture_id not in pictures_in(token, read(token)):
        raise NotFound("link")
    with system_rights():
        rows = Version.objects.filter(document=picture_id).defer("text", "staged")
        row = rows.order_by("-number").first()
    if row is None:
        raise NotFound("link")
    return row


def _without_memories(parts: Parts) -> Parts:
    """What an answer has remembered of its user is read by nobody else, also where steps are shown."""
    calls = [part for part in parts if part["type"] == "tool_call"]
    ids = {part["id"] for part in calls if part["name"] == REMEMBER.name}
    return [part for part in parts if part.get("id") not in ids] if ids else parts


def _without_stopped(shown: Value) -> Value:
    """A question that a policy has stopped is read by nobody else, nor is it a title. Raises NotFound
    where nothing else is shown."""
    kept: list[Value] = []
    for message in shown["messages"]:
        if message["status"] != MessageStatus.REFUSED or message["text"]:
            kept.append(message)
        elif kept and kept[-1]["role"] == Role.USER:
            stopped = kept.pop()
            if shown["title"] == first_title(stopped["text"]):
                shown["title"] = ""
    if not kept:
        raise NotFound("link")
    title = shown["title"] or first_title(kept[0]["text"])
    return shown | {"messages": kept, "title": title}


@transaction.atomic
def continue_from(user: Any, token: str, num_messages: int | None = None) -> Conversation:
    """Copy what the link shows, or its first messages, to a new chat of the reader's.

    It ends with the last answer among them, so that the reader can go on. Pictures stay with the link's
    owner: of others the copy has the prompts. Raises NotFound.
    """
    shown = read(token)
    messages = shown["messages"][:num_messages]
    while messages and messages[-1]["role"] != Role.ASSISTANT:
        messages.pop()
    if not messages:
        raise NotFound("message")
    conversation = Conversation.objects.create(
        owner=user, title=shown["title"], title_by_hand=True, model=messages[-1]["model"]
    )
    parent: Message | None = None
    for message in messages:
        # One by one: their times of creation are their order.
        parent = Message.objects.create(
            conversation=conversation,
            parent=parent,
            role=message["role"],
            status=message["status"],
            parts=message["parts"],
            text=message["text"],
            model=message["model"],
            sources=made_pictures.sources_of(user.pk, message["parts"]),
            brought=True,
        )
    return conversation


def _token_of(share: Share) -> str | None:
    """As the keys that are known make it, or as it was sealed."""
    for key in secret_keys():
        if _is_of(share, token := _token(share.pk, key)):
            return token
    try:
        token = unseal(share.sealed_token)
    except Unreadable:
        return None
    return token if _is_of(share, token) else None


def _token(share_id: UUID, key: str) -> str:
    mac = salted_hmac("chat.sharing", share_id.hex, key, algorithm="sha256")
    return urlsafe_b64encode(mac.digest()).decode().rstrip("=")


def _is_of(share: Share, token: str) -> bool:
    return _hash_of(token) == share.token_hash


def _hash_of(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
