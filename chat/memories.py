"""Reads and writes of what is remembered of a user, each in one transaction.

A chat copies it at its start (personal.setup_of), so that later memories change no prompt that there is.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext

from chat import access
from chat.answer_rows import user_now
from chat.errors import BadRequest, Conflict, NotFound
from chat.models import Memory
from chat.storable import is_storable

MAX_MEMORIES = 100
MAX_CHARS = 8_000  # of all that one user keeps
HEAD = "What is known about the user:"


class TooMuch(BadRequest):
    code = "too_many"


def memories_of(user: Any) -> QuerySet[Memory]:
    """Oldest first: ids grow with time."""
    return Memory.objects.filter(owner_id=user.pk).order_by("id")


def memory_text(texts: Iterable[str]) -> str:
    """What a chat that starts now tells its model, a line for each: none of them begins another."""
    lines = [f"- {' '.join(text.split())}" for text in texts]
    return "\n".join([HEAD, *lines]) if lines else ""


def checked_text(text: str) -> str:
    """Stripped, with one kind of line breaks. Raises BadRequest."""
    text = "\n".join(text.strip().splitlines())
    if not text:
        raise BadRequest(gettext("There is nothing to remember."))
    if len(text) > Memory.MAX_CHARS:
        problem = gettext("A memory has at most %(n)s characters.")
        raise BadRequest(problem % {"n": Memory.MAX_CHARS})
    if not is_storable(text):
        raise BadRequest(gettext("The text holds a character that cannot be stored."))
    return text


def remember(user: Any, text: str, conversation_id: object = None) -> tuple[Memory, bool]:
    """The memory, and whether it is new: the same text twice is one. Raises BadRequest, TooMuch,
    NotFound, SignedOut."""
    text = checked_text(text)
    with transaction.atomic():
        now = user_now(user)
        chat = access.conversation_for(now, conversation_id) if conversation_id else None
        known = memories_of(now).filter(text=text).first()
        if known is not None:
            return known, False
        _check_room(memories_of(now), text)
        return Memory.objects.create(owner_id=now.pk, text=text, conversation=chat), True


def put_memory(user: Any, memory_id: object, text: str, conversation_id: object = None) -> Memory:
    """Another text for one, or one that was deleted back in its place. Raises as `remember` does, and
    Conflict for a text that another one has."""
    text = checked_text(text)
    key = access.as_uuid(memory_id, "memory")
    with transaction.atomic():
        now = user_now(user)
        others = memories_of(now).exclude(pk=key)
        if others.filter(text=text).exists():
            raise Conflict(gettext("This is remembered already."))
        _check_room(others, text)
        row = memories_of(now).filter(pk=key).first()
        if row is None:
            return _put_back(now, key, text, conversation_id)
        row.text = text
        row.save(update_fields=["text", "updated_at"])
        return row


def _put_back(user: Any, key: UUID, text: str, conversation_id: object) -> Memory:
    """The chat may be gone meanwhile. Somebody else's id is as missing as any."""
    try:
        chat = access.conversation_for(user, conversation_id) if conversation_id else None
    except NotFound:
        chat = None
    try:
        with transaction.atomic():
            return Memory.objects.create(pk=key, owner_id=user.pk, text=text, conversation=chat)
    except IntegrityError:
        raise NotFound("memory") from None


def forget(user: Any, memory_id: object) -> None:
    """Raises NotFound."""
    rows = memories_of(user).filter(pk=access.as_uuid(memory_id, "memory"))
    if not rows.delete()[0]:
        raise NotFound("memory")


def forget_all(user: Any) -> int:
    return memories_of(user).delete()[0]


def _check_room(others: QuerySet[Memory], text: str) -> None:
    """Raises TooMuch."""
    if others.count() >= MAX_MEMORIES:
        problem = gettext("There are %(n)s memories already; delete one first.")
        raise TooMuch(problem % {"n": MAX_MEMORIES})
    num_chars = others.aggregate(sum=Sum(Length("text")))["sum"] or 0
    if num_chars + len(text) > MAX_CHARS:
        problem = gettext(
            "All memories together have at most %(n)s characters; shorten or delete one."
        )
        raise TooMuch(problem % {"n": f"{MAX_CHARS:,}"})
