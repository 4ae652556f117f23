"""Vector stores, as programs know collections: found, made, changed and shown. Synchronous.

What a program fills here a person can pick in the chat, and the other way round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from chat.api_errors import ApiError
from chat.files import row_id_of
from chat.values import Value
from retrieval import collections, expiry
from retrieval.models import UNFINISHED, Collection, VersionState

PREFIX = "vs_"
CANCELLED = "It was cancelled before it was read."
"""The reason of a version that has failed for nothing but that."""

_COUNTS = """
    SELECT collection_id, state, reason = %(cancelled)s, count(*), sum(size_bytes) FROM (
        SELECT DISTINCT ON (v.document_id) v.collection_id, v.state, v.reason, v.size_bytes
        FROM retrieval_version v JOIN retrieval_document d ON d.id = v.document_id
        WHERE v.collection_id = ANY(%(collections)s)
            AND (%(batch)s::uuid IS NULL OR d.batch_id = %(batch)s)
        ORDER BY v.document_id, v.number DESC
    ) newest GROUP BY 1, 2, 3
"""


@dataclass(slots=True)
class Counts:
    """Of files, by how they stand; `usage_bytes` are those of the completed ones."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    usage_bytes: int = 0

    def value(self) -> Value:
        total = self.in_progress + self.completed + self.failed + self.cancelled
        return {
            "in_progress": self.in_progress,
            "completed": self.completed,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "total": total,
        }


def status_of(state: str, is_cancelled: bool) -> str:
    """As OpenAI calls it."""
    if state in UNFINISHED:
        return "in_progress"
    if state == VersionState.READY:
        return "completed"
    return "cancelled" if is_cancelled else "failed"


def counts_of(collection_ids: Sequence[UUID], batch_id: UUID | None = None) -> dict[UUID, Counts]:
    """Of each, by the newest versions of its documents; of a batch's documents alone where one is
    given."""
    found = {id_: Counts() for id_ in collection_ids}
    given = {"cancelled": CANCELLED, "collections": list(collection_ids), "batch": batch_id}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, given)
        for collection_id, state, is_cancelled, num, size_bytes in cursor.fetchall():
            counts, name = found[collection_id], status_of(state, is_cancelled)
            setattr(counts, name, getattr(counts, name) + num)
            if name == "completed":
                counts.usage_bytes += int(size_bytes)
    return found


# --- rows -----------------------------------------------------------------------------------------


def find(user: Any, id_: str) -> Collection:
    """One that the user may read. Raises ApiError: 404."""
    row_id = row_id_of(id_, PREFIX)
    row = _rows(user).filter(pk=row_id).first() if row_id else None
    if row is None:
        raise ApiError(404, "not_found", f"There is no vector store with the id '{id_}'.")
    return row


def find_to_write(user: Any, id_: str) -> Collection:
    """Raises ApiError: also for one that may only be read, and for one that has expired."""
    row = find(user, id_)
    if not collections.may_write_in(user, row.pk):
        raise ApiError(403, "not_allowed", "You may read this vector store, and not change it.")
    refuse_expired(row)
    return row


def refuse_expired(row: Collection) -> None:
    """Raises ApiError."""
    if expiry.is_expired(row):
        message = "This vector store has expired, and its files are gone; make a new one."
        raise ApiError(400, "vector_store_expired", message, "vector_store_id")


def _rows(user: Any) -> "QuerySet[Collection]":
    """What is attached to messages is no store: nobody empties it by this door."""
    return collections.collections_for(user).filter(is_for_chats=False)


def page(user: Any, cursor: "Cursor") -> list[Collection]:
    """Up to as many as the cursor wants, and one more where there are more."""
    return cursor.page(
        _rows(user), row_id_of(cursor.after, PREFIX), row_id_of(cursor.before, PREFIX)
    )


@dataclass(frozen=True, slots=True)
class Cursor:
    """Which part of a list: behind `after`, or in front of `before`; ids, or empty."""

    limit: int
    newest_first: bool
    after: str = ""
    before: str = ""

    def page(self, rows: Any, after_id: UUID | None, before_id: UUID | None) -> list[Any]:
        """Raises ApiError for an id that is none. Newer rows have greater ids."""
        for name, text, id_ in (
            ("after", self.after, after_id),
            ("before", self.before, before_id),
        ):
            if text and id_ is None:
                raise ApiError(400, "invalid_value", f"{name}: '{text}' is not an id.", name)
        if after_id is not None:
            rows = (
                rows.filter(pk__lt=after_id) if self.newest_first else rows.filter(pk__gt=after_id)
            )
        if before_id is None:
            return list(rows.order_by("-pk" if self.newest_first else "pk")[: self.limit + 1])
        # The last ones in front of it, which are the first ones of the other order.
        rows = rows.filter(pk__gt=before_id) if self.newest_first else rows.filter(pk__lt=before_id)
        found = list(rows.order_by("pk" if self.newest_first else "-pk")[: self.limit + 1])
        return [*found[: self.limit][::-1], *found[self.limit :]]


def create(
    user: Any,
    *,
    name: str | None,
    description: str | None,
    metadata: dict[str, str] | None,
    expires_after_days: int | None,
) -> Collection:
    """Raises RetrievalError."""
    row = collections.create(user, name or _usual_name(), description or "")
    given = {"metadata": metadata or {}, "expires_after_days": expires_after_days}
    return collections.write(row, **given)


def _usual_name() -> str:
    return f"Vector store {timezone.now():%Y-%m-%d %H:%M}"


def change(user: Any, id_: str, changes: dict[str, Any]) -> Collection:
    """`name`, `metadata` and `expires_after_days`, as far as they are there. Of its owner.

    Raises ApiError, RetrievalError.
    """
    row = collections.own_collection_for(user, find(user, id_).pk)
    refuse_expired(row)
    given: dict[str, Any] = {
        key: changes[key] for key in ("metadata", "expires_after_days") if key in changes
    }
    if "name" in changes:
        given["name"] = collections.checked_name(changes["name"])
    return collections.write(row, **given, last_active_at=timezone.now())


def delete(user: Any, id_: str) -> None:
    """Raises ApiError, RetrievalError."""
    collections.delete(user, find(user, id_).pk)


# --- as OpenAI shows them ---------------------------------------------------------------------------


def values_of(rows: Sequence[Collection]) -> list[Value]:
    counts = counts_of([row.pk for row in rows])
    return [_value(row, counts[row.pk]) for row in rows]


def value_of(row: Collection) -> Value:
    return values_of([row])[0]


def public_id(collection_id: UUID) -> str:
    return f"{PREFIX}{collection_id.hex}"


def _value(row: Collection, counts: Counts) -> Value:
    end, days = expiry.expires_at(row), row.expires_after_days
    expiry_ = {"expires_after": {"anchor": "last_active_at", "days": days}} if days else {}
    status = "in_progress" if counts.in_progress else "completed"
    return {
        "id": public_id(row.pk),
        "object": "vector_store",
        "created_at": int(row.created_at.timestamp()),
        "name": row.name,
        "description": row.description,
        "usage_bytes": counts.usage_bytes,
        "file_counts": counts.value(),
        "status": "expired" if expiry.is_expired(row) else status,
        **expiry_,
        "expires_at": int(end.timestamp()) if end else None,
        "last_active_at": int(row.last_active_at.timestamp()),
        "metadata": row.metadata,
    }
