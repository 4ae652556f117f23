"""Files of one's own under /v1: added, found, listed and deleted. Synchronous.

Rows are seen by their owner alone; another's id is as missing as one that never was.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from chat import file_store
from chat.answer_rows import user_now
from chat.api_errors import ApiError
from chat.models import UNFINISHED_BATCHES, ApiFile, Batch

PREFIX = "file-"
MAX_FILES = 10_000  # of one user; a list shows so many at once
KEEP_BATCHES = timedelta(days=30)  # OpenAI's own, for the files that batches read and write
MIB = 2**20


def add(user: Any, row: ApiFile) -> None:
    """Its file is there. Raises ApiError, when the user's files together would be too large."""
    with transaction.atomic():
        user_now(user)  # the lock: of many uploads at once each sees the others
        files = ApiFile.objects.filter(owner_id=user.pk)
        if row.size_bytes > _room_in(files):
            raise no_room()
        if files.count() >= MAX_FILES:
            message = f"You keep {MAX_FILES:,} files already; delete some first."
            raise ApiError(400, "too_many", message)
        row.save(force_insert=True)


def room_for(user: Any) -> int:
    """Bytes that the user may still keep."""
    return _room_in(ApiFile.objects.filter(owner_id=user.pk))


def no_room() -> ApiError:
    limit = settings.MAX_FILES_BYTES // MIB
    message = f"Your files together may take {limit:,} MiB; delete some first."
    return ApiError(413, "storage_quota_exceeded", message, "file")


def _room_in(files: QuerySet[ApiFile]) -> int:
    used: int = files.aggregate(used=Sum("size_bytes"))["used"] or 0
    return max(0, settings.MAX_FILES_BYTES - used)


def find(user: Any, id_: str, param: str | None = None) -> ApiFile:
    """Raises ApiError: 404. `param` is the field that names the file."""
    row_id = row_id_of(id_, PREFIX)
    row = _kept(ApiFile.objects.filter(owner_id=user.pk, pk=row_id)).first() if row_id else None
    if row is None:
        raise ApiError(404, "not_found", f"There is no file with the id '{id_}'.", param)
    return row


def find_all(user: Any, ids: Sequence[str], param: str) -> list[ApiFile]:
    """In this order. Raises ApiError: 404 for the first that is not there."""
    row_ids = {id_: row_id_of(id_, PREFIX) for id_ in ids}
    wanted = [row_id for row_id in row_ids.values() if row_id is not None]
    rows = _kept(ApiFile.objects.filter(owner_id=user.pk, pk__in=wanted)).in_bulk()
    for id_, row_id in row_ids.items():
        if row_id not in rows:
            raise ApiError(404, "not_found", f"There is no file with the id '{id_}'.", param)
    return [rows[row_id] for id_ in ids if (row_id := row_ids[id_]) is not None]


def page(user: Any, purpose: str, *, limit: int, newest_first: bool, after: str) -> list[ApiFile]:
    """Up to `limit` of them, and one more where there are more. Raises ApiError."""
    rows = _kept(ApiFile.objects.filter(owner_id=user.pk))
    if purpose:
        rows = rows.filter(purpose=purpose)
    return list(behind(rows, after, PREFIX, newest_first=newest_first)[: limit + 1])


def delete(user: Any, id_: str) -> None:
    """Raises ApiError: also while a batch reads it, for what the batch has to do is in it."""
    row = find(user, id_)
    with transaction.atomic():
        user_now(user)  # whoever makes a batch of it holds the same lock
        batch = Batch.objects.filter(input_file=row.pk, status__in=UNFINISHED_BATCHES).first()
        if batch is not None:
            message = f"{batch.public_id} reads this file; cancel it first, or wait for its end."
            raise ApiError(400, "file_in_use", message)
        ApiFile.objects.filter(pk=row.pk).delete()
    file_store.remove(row.pk)


def delete_all(user: Any) -> None:
    """Of a user who leaves. In their scope."""
    _drop(ApiFile.objects.filter(owner_id=user.pk))


def forget_old() -> None:
    """Files whose time is over, but for those that a batch has to read. In the system's scope."""
    read = Batch.objects.filter(status__in=UNFINISHED_BATCHES).values("input_file")
    _drop(ApiFile.objects.filter(expires_at__lt=timezone.now()).exclude(pk__in=read))


def _drop(rows: QuerySet[ApiFile]) -> None:
    for row_id in list(rows.values_list("pk", flat=True)):
        ApiFile.objects.filter(pk=row_id).delete()
        file_store.remove(row_id)


# --- what lists of /v1 share ----------------------------------------------------------------------


def row_id_of(id_: str, prefix: str) -> UUID | None:
    """Nonsense is as missing as an unknown id."""
    try:
        return UUID(hex=id_.removeprefix(prefix)) if id_.startswith(prefix) else None
    except ValueError:
        return None


def behind(rows: Any, after: str, prefix: str, *, newest_first: bool) -> Any:
    """Rows in order, from the one behind `after` on. Raises ApiError where that is no id."""
    if after:
        row_id = row_id_of(after, prefix)
        if row_id is None:
            raise ApiError(400, "invalid_value", f"after: '{after}' is not an id.", "after")
        rows = rows.filter(pk__lt=row_id) if newest_first else rows.filter(pk__gt=row_id)
    return rows.order_by("-pk" if newest_first else "pk")


def _kept(rows: QuerySet[ApiFile]) -> QuerySet[ApiFile]:
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
