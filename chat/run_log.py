"""The durable log of running answers. Synchronous; each function is one transaction.

Every write names the lease owner and does nothing for anybody else (LeaseLost), so that an answer is
never written by two processes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chat import parts as message_parts
from chat.actions import LEASE_S
from chat.events import (
    Delta,
    Failed,
    Finished,
    LogEvent,
    Refused,
    Started,
    Stopped,
    from_payload,
    to_payload,
)
from chat.models import (
    ACTIVE_STATUSES,
    Generation,
    GenerationEvent,
    GenerationStatus,
    Message,
    MessageStatus,
)

_ENDS: dict[type[LogEvent], tuple[GenerationStatus, MessageStatus]] = {
    Finished: (GenerationStatus.FINISHED, MessageStatus.COMPLETE),
    Stopped: (GenerationStatus.STOPPED, MessageStatus.STOPPED),
    Refused: (GenerationStatus.FAILED, MessageStatus.REFUSED),
    Failed: (GenerationStatus.FAILED, MessageStatus.FAILED),
}


class LeaseLost(Exception):
    """Another process writes this answer now."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What the log holds of one run. `output_ids` are those of the last engine turn."""

    events: list[LogEvent]
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]


def append(
    generation_id: UUID, lease_owner: str, first_seq: int, events: Sequence[LogEvent]
) -> None:
    """Write events numbered from `first_seq` and renew the lease. Raises LeaseLost."""
    if all(isinstance(event, Delta) for event in events):
        return _append_text(generation_id, lease_owner, first_seq, events)
    changes: dict[str, object] = {}
    for event in events:
        if isinstance(event, Started):
            changes |= {
                "status": GenerationStatus.PREFILL,
                "prompt_ids": list(event.prompt_ids),
                "model_revision": event.revision,
            }
        elif isinstance(event, Delta):
            changes["status"] = GenerationStatus.DECODE
    with transaction.atomic():
        _update(generation_id, lease_owner, seq=first_seq + len(events) - 1, **changes)
        _insert(generation_id, first_seq, events)


_APPEND_TEXT = """
    WITH held AS (
        UPDATE chat_generation
        SET seq = %(last)s, status = 'decode', lease_until = %(lease_until)s
        WHERE id = %(id)s AND lease_owner = %(owner)s AND status = ANY(%(active)s)
        RETURNING id
    )
    INSERT INTO chat_generationevent (generation_id, seq, payload)
    SELECT held.id, %(first)s - 1 + line.number, line.payload
    FROM held, jsonb_array_elements(%(payloads)s::jsonb) WITH ORDINALITY AS line (payload, number)
"""


def _append_text(
    generation_id: UUID, lease_owner: str, first_seq: int, events: Sequence[LogEvent]
) -> None:
    """What append() does for text, many times a second: one statement instead of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            _APPEND_TEXT,
            {
                "id": generation_id,
                "owner": lease_owner,
                "active": [str(status) for status in ACTIVE_STATUSES],
                "lease_until": _lease_end(),
                "first": first_seq,
                "last": first_seq + len(events) - 1,
                "payloads": json.dumps([to_payload(event) for event in events]),
            },
        )
        if cursor.rowcount != len(events):
            raise LeaseLost


def finish(
    generation_id: UUID,
    lease_owner: str,
    first_seq: int,
    events: Sequence[LogEvent],
    all_events: Sequence[LogEvent],
) -> None:
    """Write the last events, and the message as all events fold up to. Raises LeaseLost."""
    end = all_events[-1]
    generation_status, message_status = _ENDS[type(end)]
    parts = message_parts.fold(all_events)
    with transaction.atomic():
        _update(
            generation_id,
            lease_owner,
            seq=first_seq + len(events) - 1,
            status=generation_status,
            finished_at=timezone.now(),
        )
        _insert(generation_id, first_seq, events)
        Message.objects.filter(generation=generation_id).update(
            status=message_status,
            parts=parts,
            text=message_parts.text_of(parts),
            **_summary_of(end),
        )


def renew(generation_id: UUID, lease_owner: str) -> bool:
    """Keep the lease; tells whether a stop was requested. Raises LeaseLost."""
    _update(generation_id, lease_owner)
    return Generation.objects.filter(pk=generation_id, stop_requested=True).exists()


def request_stop(generation_id: UUID) -> None:
    """Ask the process that writes a run, whichever it is, to stop it."""
    Generation.objects.filter(pk=generation_id).update(stop_requested=True)


def release(generation_id: UUID, lease_owner: str) -> None:
    """Give the lease up, so that the next process need not wait for it to run out."""
    Generation.objects.filter(pk=generation_id, lease_owner=lease_owner).update(
        lease_until=timezone.now()
    )


def claim(generation: Generation, lease_owner: str) -> bool:
    """Take over a run whose lease has run out. False: somebody else was faster."""
    claimed = Generation.objects.filter(
        pk=generation.pk,
        status__in=ACTIVE_STATUSES,
        lease_owner=generation.lease_owner,
        lease_until=generation.lease_until,
    ).update(lease_owner=lease_owner, lease_until=_lease_end(), attempts=generation.attempts + 1)
    return bool(claimed)


def load(generation: Generation) -> Logged:
    """The events so far, and the engine turn that they end in."""
    rows = GenerationEvent.objects.filter(generation=generation).order_by("seq")
    events = [from_payload(payload) for payload in rows.values_list("payload", flat=True)]
    output_ids: list[int] = []
    for event in events:
        if isinstance(event, Started):
            output_ids = []
        elif isinstance(event, Delta):
            output_ids += event.ids
    return Logged(events, tuple(generation.prompt_ids), tuple(output_ids))


def events_after(generation_id: UUID, seq: int) -> list[tuple[int, LogEvent]]:
    """Logged events behind `seq`, with their numbers."""
    rows = GenerationEvent.objects.filter(generation=generation_id, seq__gt=seq).order_by("seq")
    return [(n, from_payload(payload)) for n, payload in rows.values_list("seq", "payload")]


def prune(ended_before: datetime, limit: int = 500) -> int:
    """Drop the events of up to `limit` runs that ended before; returns how many runs had some."""
    runs = (
        Generation.objects.exclude(status__in=ACTIVE_STATUSES)
        .filter(finished_at__lt=ended_before)
        .filter(Exists(GenerationEvent.objects.filter(generation=OuterRef("pk"))))
        .values_list("pk", flat=True)[:limit]
    )
    chosen = list(runs)
    GenerationEvent.objects.filter(generation__in=chosen).delete()
    return len(chosen)


def _update(generation_id: UUID, lease_owner: str, **changes: object) -> None:
    updated = Generation.objects.filter(
        pk=generation_id, lease_owner=lease_owner, status__in=ACTIVE_STATUSES
    ).update(lease_until=_lease_end(), **changes)
    if not updated:
        raise LeaseLost


def _insert(generation_id: UUID, first_seq: int, events: Sequence[LogEvent]) -> None:
    GenerationEvent.objects.bulk_create(
        GenerationEvent(generation_id=generation_id, seq=seq, payload=to_payload(event))
        for seq, event in enumerate(events, start=first_seq)
    )


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_S)


def _summary_of(end: LogEvent) -> dict[str, object]:
    match end:
        case Finished(reason=reason, usage=usage, timings=timings):
            return {
                "finish_reason": reason,
                "usage": asdict(usage),
                "timings": asdict(timings),
            }
        case Stopped(usage=usage, timings=timings):
            return {
                "finish_reason": "stopped",
                "usage": asdict(usage),
                "timings": asdict(timings),
            }
        case Refused(code=code, message=message) | Failed(code=code, message=message):
            return {"finish_reason": "error", "error": {"code": code, "message": message}}
    raise TypeError(end)
