"""Reading the durable log of answers, and letting go of what nobody follows any more. Synchronous."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef

from chat import access, turns
from chat.events import (
    Delta,
    LogEvent,
    Started,
    from_payload,
)
from chat.models import ACTIVE_STATUSES, Generation, GenerationEvent
from inference import PromptImage


@dataclass(frozen=True, slots=True)
class Logged:
    """What the log holds of one run. `output_ids` are those of the last engine turn."""

    events: list[LogEvent]
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    taken: turns.Taken
    images: tuple[PromptImage, ...] = ()


def load(generation: Generation, *, only_readable: bool = False) -> Logged:
    """The events so far, and the engine turn that they end in.

    Another version of the program may have logged what this one does not know, which raises KeyError or
    TypeError; `only_readable` takes what there is before that.
    """
    rows = GenerationEvent.objects.filter(generation=generation).order_by("seq")
    events: list[LogEvent] = []
    for payload in rows.values_list("payload", flat=True):
        try:
            events.append(from_payload(payload))
        except (KeyError, TypeError):
            if only_readable:
                break
            raise
    output_ids: list[int] = []
    for event in events:
        if isinstance(event, Started):
            output_ids = []
        elif isinstance(event, Delta):
            output_ids += event.ids
    turn = generation.turns.last()
    prompt_ids = tuple(turn.prompt_ids) if turn else ()
    images = turns.images_of(turn) if turn else ()
    return Logged(events, prompt_ids, tuple(output_ids), turns.taken(generation, events), images)


def has_logged(generation_id: UUID, lease_owner: str, seq: int) -> bool:
    """Whether events up to `seq` are in the log, and nobody but this owner has written since."""
    with access.seeing_deleted():
        rows = Generation.objects.filter(pk=generation_id, lease_owner=lease_owner)
        return rows.filter(seq__gte=seq).exists()


def events_after(generation_id: UUID, seq: int) -> list[tuple[int, LogEvent]]:
    """Logged events behind `seq`, with their numbers."""
    rows = GenerationEvent.objects.filter(generation=generation_id, seq__gt=seq).order_by("seq")
    return [(n, from_payload(payload)) for n, payload in rows.values_list("seq", "payload")]


def prune(ended_before: datetime, limit: int = 500) -> int:
    """Drop the events of up to `limit` runs that ended before; returns how many runs had some.

    Only runs as new as the oldest that has events are looked at: of all that ever were, an index of when
    they ended would have to be kept for this alone.
    """
    oldest = GenerationEvent.objects.order_by("generation").values_list("generation", flat=True)[:1]
    runs = (
        Generation.objects.exclude(status__in=ACTIVE_STATUSES)
        .filter(pk__gte=oldest, finished_at__lt=ended_before)
        .filter(Exists(GenerationEvent.objects.filter(generation=OuterRef("pk"))))
        .values_list("pk", flat=True)[:limit]
    )
    chosen = list(runs)
    GenerationEvent.objects.filter(generation__in=chosen).delete()
    return len(chosen)
