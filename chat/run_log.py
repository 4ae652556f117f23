"""The durable log of running answers. Synchronous; each function is one transaction.

Every write names the lease owner and does nothing for anybody else (LeaseLost), so that an answer is
never written by two processes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from chat import access, budgets, made_pictures, run_ends, run_log_reading, turns
from chat import parts as message_parts
from chat.answer_rows import LEASE_S
from chat.asking import MAX_DECIDED
from chat.blackening import BLACK
from chat.database_line import DatabaseLine
from chat.engine import is_known_elsewhere
from chat.events import (
    Delta,
    Failed,
    Finished,
    LogEvent,
    Refused,
    Resumed,
    Started,
    Stopped,
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
from chat.prices import Price
from chat.pricing import cost_of, price_of
from chat.spans import Span, Trace

_ENDS: dict[type[LogEvent], tuple[GenerationStatus, MessageStatus]] = {
    Finished: (GenerationStatus.FINISHED, MessageStatus.COMPLETE),
    Stopped: (GenerationStatus.STOPPED, MessageStatus.STOPPED),
    Refused: (GenerationStatus.FAILED, MessageStatus.REFUSED),
    Failed: (GenerationStatus.FAILED, MessageStatus.FAILED),
}


# Every run does so every two seconds, and Django would take longer to make it than Postgres to answer.
_RENEW = """
UPDATE chat_generation SET lease_until = %s
WHERE id = %s AND lease_owner = %s AND status = ANY(%s)
RETURNING stop_requested, (params ->> 'stop_chars')::int
"""

APPEND = "SELECT chat_append_events({}, {}, {})"


class LeaseLost(Exception):
    """Another process writes this answer now."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """`chars`: so much of the answer had been read; None: all that there is."""

    chars: int | None


@dataclass(frozen=True, slots=True)
class ToAppend:
    """Events of one run, numbered from `first_seq`, and the trace where it has news."""

    generation_id: UUID
    first_seq: int
    events: Sequence[LogEvent]
    trace: Trace | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "id": str(self.generation_id),
            "first": self.first_seq,
            "last": self.first_seq + len(self.events) - 1,
            "payloads": [to_payload(event) for event in self.events],
            "trace": self.trace.to_json() if self.trace else None,
            "turns": turns.begun_by(self.events),
            **_state_after(self.events),
        }


def append(
    generation_id: UUID,
    lease_owner: str,
    first_seq: int,
    events: Sequence[LogEvent],
    trace: Trace | None = None,
) -> None:
    """Write events numbered from `first_seq`, and the trace where it has news, and renew the lease.

    Raises LeaseLost.
    """
    if not append_all(lease_owner, [ToAppend(generation_id, first_seq, events, trace)]):
        raise LeaseLost


def append_all(lease_owner: str, news: Sequence[ToAppend]) -> set[UUID]:
    """append() for runs of any owners, in one statement (migration 0011).

    Returns whose lease is still held; for the others nothing was written.
    """
    num_spans = _num_spans(news)
    with connection.cursor() as cursor:
        cursor.execute(APPEND.format("%s", "%s", "%s"), _given(lease_owner, news))
        held = {row[0] for row in cursor.fetchall()}
    _note_saved(news, num_spans, held)
    return held


async def append_all_on(
    line: DatabaseLine, lease_owner: str, news: Sequence[ToAppend]
) -> set[UUID]:
    """The same without a thread."""
    num_spans = _num_spans(news)
    rows = await line.column(APPEND.format("$1", "$2", "$3"), _given(lease_owner, news))
    held = set(map(UUID, rows))
    _note_saved(news, num_spans, held)
    return held


def _given(lease_owner: str, news: Sequence[ToAppend]) -> list[str]:
    given = json.dumps([each.to_json() for each in news])
    return [given, lease_owner, _lease_end().isoformat()]


def _num_spans(news: Sequence[ToAppend]) -> list[int]:
    return [len(each.trace.spans) if each.trace else 0 for each in news]


def _note_saved(news: Sequence[ToAppend], num_spans: Sequence[int], held: set[UUID]) -> None:
    for each, num in zip(news, num_spans, strict=True):
        if each.trace and each.generation_id in held:
            each.trace.is_saved = len(each.trace.spans) == num  # none was added meanwhile


def _state_after(events: Sequence[LogEvent]) -> dict[str, str]:
    """What events say of the run's own row."""
    state: dict[str, str] = {}
    for event in events:
        if isinstance(event, Started):
            state |= {"status": GenerationStatus.PREFILL, "revision": event.revision}
        elif isinstance(event, Delta):
            state["status"] = GenerationStatus.DECODE
    return state


def finish(
    generation_id: UUID,
    lease_owner: str,
    first_seq: int,
    events: Sequence[LogEvent],
    all_events: Sequence[LogEvent],
    trace: Trace,
) -> None:
    """Write the last events, and the message as all events fold up to. Raises LeaseLost.

    Also where the chat was deleted meanwhile: what the answer took is entered all the same.
    """
    end = all_events[-1]
    generation_status, message_status = _ENDS[type(end)]
    parts = message_parts.fold(all_events)
    saving_ms = trace.clock.now_ms()
    with access.seeing_deleted():
        append(generation_id, lease_owner, first_seq, events)
        _update(generation_id, lease_owner, status=generation_status, finished_at=timezone.now())
        if isinstance(end, Refused) and end.removes:
            rows = GenerationEvent.objects.filter(generation=generation_id)
            rows.filter(seq__lt=len(all_events)).delete()  # its followers get the message
        turns.end(generation_id, all_events)
        generation = Generation.objects.annotate(owner=F("conversation__owner")).get(
            pk=generation_id
        )
        Message.with_deleted.filter(generation=generation_id).update(
            status=message_status,
            parts=parts,
            text=message_parts.text_of(parts),
            resumed=any(isinstance(event, Resumed) for event in all_events),
            left_out=run_ends.left_out(all_events),
            found=run_ends.found(all_events),
            from_cache=run_ends.from_cache(all_events),
            sources=made_pictures.sources_of(generation.owner, parts),
            **run_ends.summary_of(end),
        )
        # Once the row's place is ours, so that none of this happens twice.
        price = price_of(generation.model)
        _settle(generation, generation.owner, price, all_events)
        if any(BLACK in event.text for event in all_events if isinstance(event, Delta)):
            generation.trace["is_redacted"] = True  # its tokens are to be shown nowhere
        _save_trace(
            generation, trace, saving_ms, cost_of(price, end), run_ends.candidates(all_events)
        )


def _settle(
    generation: Generation, owner_id: Any, price: Price | None, events: Sequence[LogEvent]
) -> None:
    charge = budgets.charge_of(
        price,
        events[generation.params.get("num_brought", 0) :],
        is_elsewhere=is_known_elsewhere(generation.model),
    )
    budgets.settle(
        generation.pk,
        owner_id=owner_id,
        api_key_id=generation.params.get("api_key"),
        model=generation.model,
        charge=charge,
    )


def give_up(generations: QuerySet[Generation]) -> None:
    """Lock runs that are about to be deleted, and enter what those that have not ended took by now:
    nobody else will."""
    rows = generations.select_for_update().order_by("pk").values_list("pk", "status")
    active = [pk for pk, status in rows if status in ACTIVE_STATUSES]
    # By model, as all who enter into the ledger, so that no two wait for each other.
    ending = Generation.objects.filter(pk__in=active).select_related("conversation")
    for row in ending.order_by("model", "pk"):
        logged = run_log_reading.load(row)
        events = [*logged.events, Stopped(0, logged.taken.by_all)]
        _settle(row, row.conversation.owner_id, price_of(row.model), events)


def _save_trace(
    generation: Generation,
    trace: Trace,
    saving_ms: float,
    cost: dict[str, str] | None,
    candidates: list[dict[str, object]] | None,
) -> None:
    """The last write of a run, so that the trace tells how long the others took."""
    trace.add(Span("saved", max(saving_ms, trace.end_ms), trace.clock.now_ms()))
    kept = {name: generation.trace[name] for name in ("is_redacted",) if name in generation.trace}
    generation.trace = trace.to_json() | {"cost": cost} | kept
    if candidates is not None:
        generation.trace["candidates"] = candidates
    revisions = [span.facts["revision"] for span in trace.spans if span.facts.get("revision")]
    if revisions:
        generation.model_revision = revisions[-1]
    generation.save(update_fields=["trace", "model_revision"])


def renew(generation_id: UUID, lease_owner: str) -> StopRequest | None:
    """Keep the lease; tells of a stop that was requested. Raises LeaseLost."""
    row = _renewed(generation_id, lease_owner)
    if row is None:
        with access.seeing_deleted():  # perhaps its chat was deleted: then a stop was
            row = _renewed(generation_id, lease_owner)
    if row is None:
        raise LeaseLost
    is_stopped, chars = row
    return StopRequest(chars) if is_stopped else None


def _renewed(generation_id: UUID, lease_owner: str) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        active = list(ACTIVE_STATUSES)
        cursor.execute(_RENEW, [_lease_end(), generation_id, lease_owner, active])
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def request_stop(generation_id: UUID, chars: int | None = None) -> None:
    """Ask the process that writes a run, whichever it is, to stop it, after so many characters."""
    with transaction.atomic():
        active = Generation.objects.filter(pk=generation_id, status__in=ACTIVE_STATUSES)
        row = active.select_for_update().first()
        if row is None:
            return  # it has ended
        row.stop_requested = True
        if chars is not None:
            row.params["stop_chars"] = chars
        row.save(update_fields=["stop_requested", "params"])


def request_stops(generations: QuerySet[Generation]) -> list[UUID]:
    """The same of all that have not ended; returns which. They are locked in one order.

    Before their messages are, where those change too: finish() locks the run and then its message.
    """
    active = generations.filter(status__in=ACTIVE_STATUSES).order_by("pk")
    ids = list(active.select_for_update().values_list("pk", flat=True))
    Generation.objects.filter(pk__in=ids).update(stop_requested=True)
    return ids


def decide(generation_id: UUID, call_id: str, is_allowed: bool) -> bool | None:
    """Keep the user's word about a call of a tool, for the process that writes the run. The first one
    counts, and is returned; None where there were too many."""
    with transaction.atomic():
        row = Generation.objects.select_for_update().get(pk=generation_id)
        known: dict[str, bool] = row.params.get("decided", {})
        if call_id in known:
            return known[call_id]
        if len(known) >= MAX_DECIDED:
            return None  # an answer has no more calls than that
        row.params["decided"] = known | {call_id: is_allowed}
        row.save(update_fields=["params"])
        return is_allowed


def decided(generation_id: UUID) -> dict[str, bool]:
    row = Generation.objects.filter(pk=generation_id).values_list("params", flat=True).first()
    found: dict[str, bool] = (row or {}).get("decided", {})
    return found


def release(generation_id: UUID, lease_owner: str) -> None:
    """Give the lease up, so that the next process need not wait for it to run out."""
    Generation.objects.filter(pk=generation_id, lease_owner=lease_owner).update(
        lease_owner="", lease_until=timezone.now()
    )


def last_written_at(generation: Generation) -> datetime:
    """When the process that held the lease was last heard of; `generation` as it was before a claim."""
    lease_until = generation.lease_until or generation.created_at
    return lease_until - timedelta(seconds=LEASE_S if generation.lease_owner else 0)


def claim(generation: Generation, lease_owner: str) -> bool:
    """Take over a run whose lease has run out. False: somebody else was faster."""
    claimed = Generation.objects.filter(
        pk=generation.pk,
        status__in=ACTIVE_STATUSES,
        lease_owner=generation.lease_owner,
        lease_until=generation.lease_until,
    ).update(lease_owner=lease_owner, lease_until=_lease_end(), attempts=generation.attempts + 1)
    return bool(claimed)


def _update(generation_id: UUID, lease_owner: str, **changes: object) -> None:
    updated = Generation.objects.filter(
        pk=generation_id, lease_owner=lease_owner, status__in=ACTIVE_STATUSES
    ).update(lease_until=_lease_end(), **changes)
    if not updated:
        raise LeaseLost


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_S)
