"""The rows of batches, from their making to their end. Synchronous; each function is one transaction.

Every write of a process that works on a batch names the lease owner and does nothing for anybody
else (LeaseLost), so that no line is answered twice in a batch's files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import BigIntegerField, F, Func, Sum
from django.utils import timezone

from chat import files
from chat.answer_rows import user_now
from chat.api_errors import ApiError
from chat.batch_calls import ENDPOINTS, Answer
from chat.batch_lines import Checked
from chat.models import UNFINISHED_BATCHES, ApiFile, Batch, BatchResult, BatchStatus
from chat.rights import Rights, usable_key
from chat.storable import storable

PREFIX = "batch_"
WINDOW = timedelta(hours=24)
LEASE_S = 10.0
WAITING = """
SELECT id, owner_id, status FROM chat_batch
WHERE status = ANY(%s) AND lease_until < %s ORDER BY id
"""
MAX_UNFINISHED = 20  # of one user
MAX_ATTEMPTS = 4  # a line that took three processes down is not tried again
LONGEST_REST_S = 3600.0


class LeaseLost(Exception):
    """Another process works on this batch, or it is gone."""


# --- the owner's side -----------------------------------------------------------------------------


def create(rights: Rights, input_file_id: str, **fields: Any) -> Batch:
    """Raises ApiError; then nothing was made."""
    with transaction.atomic():
        user = user_now(rights.user)
        file = files.find(user, input_file_id, "input_file_id")
        if file.purpose != "batch":
            message = f"input_file_id: the file's purpose is {file.purpose}, and not batch."
            raise ApiError(400, "invalid_value", message, "input_file_id")
        if not files.room_for(user):
            raise files.no_room()
        mine = Batch.objects.filter(owner_id=user.pk, status__in=UNFINISHED_BATCHES)
        if mine.count() >= MAX_UNFINISHED:
            message = f"{MAX_UNFINISHED} batches of yours wait or run; wait for one to end."
            raise ApiError(429, "too_many_batches", message, retry_after_s=60.0)
        return Batch.objects.create(
            owner=user,
            api_key_id=rights.api_key_id,
            input_file=file.pk,
            expires_at=timezone.now() + WINDOW,
            **fields,
        )


def find(user: Any, id_: str) -> Batch:
    """Raises ApiError: 404."""
    row_id = files.row_id_of(id_, PREFIX)
    row = Batch.objects.filter(owner_id=user.pk, pk=row_id).first() if row_id else None
    if row is None:
        raise ApiError(404, "not_found", f"There is no batch with the id '{id_}'.")
    return row


def page(user: Any, *, limit: int, after: str) -> list[Batch]:
    """Up to `limit` of them, and one more where there are more, newest first. Raises ApiError."""
    rows = Batch.objects.filter(owner_id=user.pk)
    found: list[Batch] = list(files.behind(rows, after, PREFIX, newest_first=True)[: limit + 1])
    return found


def cancel(user: Any, id_: str) -> Batch:
    """Ask for its end; a second time changes nothing. Raises ApiError for one that has ended."""
    row = find(user, id_)
    running = (BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS)
    Batch.objects.filter(pk=row.pk, status__in=running).update(
        status=BatchStatus.CANCELLING, cancelling_at=timezone.now()
    )
    # One that rests is woken up for its end.
    Batch.objects.filter(pk=row.pk, lease_owner="").update(lease_until=timezone.now())
    row.refresh_from_db()
    if row.status not in (BatchStatus.CANCELLING, BatchStatus.CANCELLED):
        message = f"A batch that is {row.status} cannot be cancelled."
        raise ApiError(400, "invalid_request", message)
    return row


# --- the side of the process that works on it -----------------------------------------------------


def find_waiting() -> list[tuple[UUID, Any, bool]]:
    """(batch id, owner id, whether only its end is to be written) of those that nobody works on, the
    oldest first. Needs the system's scope."""
    ending = (BatchStatus.CANCELLING, BatchStatus.FINALIZING)
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [list(UNFINISHED_BATCHES), timezone.now()])
        found = cursor.fetchall()
    return [(id_, owner_id, status in ending) for id_, owner_id, status in found]


def claim(batch_id: UUID, me: str) -> Batch | None:
    """Take up a batch that nobody works on. None: somebody does, or it is over."""
    now = timezone.now()
    with transaction.atomic():
        free = Batch.objects.select_for_update(skip_locked=True).filter(
            pk=batch_id, status__in=UNFINISHED_BATCHES, lease_until__lt=now
        )
        row = free.first()
        if row is None:
            return None
        # A process that let go of it in peace has not died of it.
        row.attempts += bool(row.lease_owner)
        row.lease_owner, row.lease_until = me, _lease_end()
        row.save(update_fields=["attempts", "lease_owner", "lease_until"])
    return row


def renew(batch_id: UUID, me: str) -> Batch:
    """Keep the lease; the row as it is now. Raises LeaseLost."""
    _update(batch_id, me)
    row = Batch.objects.filter(pk=batch_id).first()
    if row is None:
        raise LeaseLost
    return row


def release(batch_id: UUID, me: str, rest_s: float = 0.0) -> None:
    """Give the lease up, so that the next process need not wait for it to run out; but for a while it
    may rest before."""
    Batch.objects.filter(pk=batch_id, lease_owner=me).update(
        lease_owner="", lease_until=timezone.now() + timedelta(seconds=rest_s)
    )


def put_off(batch_id: UUID, me: str, attempts: int) -> None:
    """One that comes to no end, however often it is tried, is tried ever more rarely."""
    if attempts < MAX_ATTEMPTS:
        return  # its lease runs out
    rest_s = min(LONGEST_REST_S, LEASE_S * 2.0 ** min(attempts - MAX_ATTEMPTS + 1, 16))
    Batch.objects.filter(pk=batch_id, lease_owner=me).update(
        lease_until=timezone.now() + timedelta(seconds=rest_s)
    )


def rights_of(batch: Batch) -> Rights | None:
    """As of now, of its owner and of the key that made it; None: it has none any more."""
    user: Any = get_user_model()._default_manager.filter(pk=batch.owner_id).first()
    if user is None or not user.is_active or "files" not in user.tier.features:
        return None
    if batch.api_key_id is None:
        return Rights(user, is_background=True)
    key = usable_key(user, batch.api_key_id)
    if key is None or not {"files", ENDPOINTS[batch.endpoint].scope} <= set(key.scopes):
        return None
    return Rights(user, key, is_background=True)


def begin(batch_id: UUID, me: str, checked: Checked) -> None:
    """Its file is right. Raises LeaseLost."""
    model = storable(checked.model)[:200]
    with transaction.atomic():
        _update(batch_id, me, num_lines=checked.num_lines, model=model)
        _change(batch_id, me, BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS)


def begin_end(batch_id: UUID, me: str) -> None:
    """Every line is answered. Raises LeaseLost."""
    _change(batch_id, me, BatchStatus.IN_PROGRESS, BatchStatus.FINALIZING)


def done(batch_id: UUID) -> set[int]:
    """The numbers of lines whose results are kept."""
    return set(BatchResult.objects.filter(batch=batch_id).values_list("number", flat=True))


def has_room(batch: Batch) -> bool:
    """Whether its results so far, which become files, fit beside the owner's."""
    results = BatchResult.objects.filter(batch=batch.pk)
    # Of the size as it is kept in the row: no text is read for it.
    sizes = Func(F("text"), function="octet_length", output_field=BigIntegerField())
    used: int = results.aggregate(used=Sum(sizes))["used"] or 0
    return used < files.room_for(batch.owner)


def keep(batch: Batch, me: str, number: int, answer: Answer) -> None:
    """The result of a line, and what it adds to the counts. Raises LeaseLost."""
    counted = "num_failed" if answer.is_error else "num_completed"
    sums = {name: F(name) + value for name, value in answer.usage.items()}
    with transaction.atomic():
        # First, for it locks the row: whoever has lost the lease puts nothing beside it.
        _update(batch.pk, me, attempts=0, **{counted: F(counted) + 1}, **sums)
        BatchResult.objects.create(
            batch_id=batch.pk,
            owner_id=batch.owner_id,
            number=number,
            is_error=answer.is_error,
            text=answer.text,
        )


@dataclass(frozen=True, slots=True)
class End:
    """How a batch ends, and the files that tell what became of its lines."""

    status: BatchStatus
    errors: Sequence[dict[str, Any]] = ()
    output: ApiFile | None = None
    error: ApiFile | None = None


def finish(batch_id: UUID, me: str, end: End) -> None:
    """The last write. Raises LeaseLost; then the files have no rows."""
    written = [file for file in (end.output, end.error) if file]
    with transaction.atomic():
        _update(
            batch_id,
            me,
            status=end.status,
            errors=list(end.errors),
            output_file=end.output.pk if end.output else None,
            error_file=end.error.pk if end.error else None,
            **{f"{end.status}_at": timezone.now()},
        )
        ApiFile.objects.bulk_create(written)
        BatchResult.objects.filter(batch=batch_id).delete()


def _change(batch_id: UUID, me: str, before: BatchStatus, after: BatchStatus) -> None:
    """To another status, unless its owner has asked for its end meanwhile."""
    rows = Batch.objects.filter(pk=batch_id, lease_owner=me, status=before)
    rows.update(status=after, **{f"{after}_at": timezone.now()})


def _update(batch_id: UUID, me: str, **changes: Any) -> None:
    rows = Batch.objects.filter(pk=batch_id, lease_owner=me, status__in=UNFINISHED_BATCHES)
    if not rows.update(lease_until=_lease_end(), **changes):
        raise LeaseLost


def _lease_end() -> Any:
    return timezone.now() + timedelta(seconds=LEASE_S)
