"""The engine turns of an answer as rows: all that is needed to ask the same again. Synchronous."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from chat.delivered import Delivered
from chat.engine import is_known_elsewhere
from chat.events import Delta, LogEvent, RunUsage, Started, ToolCall
from chat.ids import lowest_uuid7
from chat.models import ACTIVE_STATUSES, Generation, GenerationTurn
from inference import PromptImage, SamplingParams

_PORTION = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """What turns took of the model: those that are over, and all of them."""

    by_ended: RunUsage = field(default_factory=RunUsage)
    by_all: RunUsage = field(default_factory=RunUsage)


def begun_by(events: Iterable[LogEvent]) -> list[dict[str, Any]]:
    """What the engine was asked in each turn that begins among the events, perhaps anew."""
    begun = {
        event.turn: {
            "index": event.turn,
            "params": _params_of(event),
            "prompt_ids": list(event.prompt_ids),
        }
        for event in events
        if isinstance(event, Started) and event.prompt_ids
    }
    return list(begun.values())


def _params_of(event: Started) -> dict[str, Any]:
    params = asdict(event.params) if event.params else {}
    places = [[one.offset, one.num_ids, one.digest, one.num_columns] for one in event.images]
    return {**params, "images": places} if places else params


def end(generation_id: UUID, all_events: Iterable[LogEvent]) -> None:
    """Keep the tokens that were written; one statement for each turn, most often one."""
    written: dict[int, list[int]] = {}
    turn = 0
    for event in all_events:
        if isinstance(event, Started):
            turn = event.turn
        elif isinstance(event, Delta) and event.ids:
            written.setdefault(turn, []).extend(event.ids)
    for index, output_ids in written.items():
        rows = GenerationTurn.objects.filter(generation=generation_id, index=index)
        rows.update(output_ids=output_ids)


def forget(created_before: datetime) -> int:
    """Drop the token ids of answers that were begun before, and are not being written; of how many. What
    is said of them elsewhere (text, usage, trace, parameters) stays. In the system's scope.

    Rows that are empty already are walked over, once a call: an index of those that are not would have
    to read every prompt that is written.
    """
    kept = GenerationTurn.objects.exclude(prompt_ids=[], output_ids=[])
    runs = (
        Generation.objects.exclude(status__in=ACTIVE_STATUSES)
        .filter(pk__lt=lowest_uuid7(created_before))
        .filter(Exists(kept.filter(generation=OuterRef("pk"))))
        .order_by("pk")
    )
    num, after = 0, UUID(int=0)
    while chosen := list(runs.filter(pk__gt=after).values_list("pk", flat=True)[:_PORTION]):
        rows = GenerationTurn.objects.filter(generation__in=chosen)
        rows.update(prompt_ids=[], output_ids=[])
        num, after = num + len(chosen), chosen[-1]
    return num


def taken(generation: Generation, events: Sequence[LogEvent]) -> Taken:
    """By the log of an answer that was interrupted. A turn that has called tools is over. Of another
    server's model only what it has written is known, about; from the cache nothing is."""
    begun = [number for number, event in enumerate(events) if isinstance(event, Started)]
    last = begun[-1] if begun else 0
    has_called = any(isinstance(event, ToolCall) for event in events[last:])
    # Another server is asked once for all: what it goes on behind is in no later usage.
    is_over = has_called or is_known_elsewhere(generation.model)
    num_ended = len(events) if is_over else last
    # One that another answer had begun, and this one goes on with, is there twice.
    going_on = _indices(events[num_ended:])
    ended = _indices(events[:num_ended]) - going_on
    num_read = {row.index: len(row.prompt_ids) for row in generation.turns.all()}
    return Taken(
        RunUsage(
            sum(num for index, num in num_read.items() if index in ended),
            completion_tokens=_num_written(generation, events[:num_ended]),
        ),
        RunUsage(sum(num_read.values()), completion_tokens=_num_written(generation, events)),
    )


def _indices(events: Iterable[LogEvent]) -> set[int]:
    return {event.turn for event in events if isinstance(event, Started)}


def _num_written(generation: Generation, events: Sequence[LogEvent]) -> int:
    is_elsewhere = is_known_elsewhere(generation.model)
    delivered = Delivered(is_elsewhere=is_elsewhere)
    for event in events[generation.params.get("num_brought", 0) if is_elsewhere else 0 :]:
        delivered.hear(event)
    return delivered.num_tokens


def images_of(turn: GenerationTurn) -> tuple[PromptImage, ...]:
    """Where images stand in its prompt, and which: without their data."""
    return tuple(
        PromptImage(offset, num_ids, digest, b"", *num_columns)  # which older rows do not have
        for offset, num_ids, digest, *num_columns in turn.params.get("images", ())
    )


def params_of(turn: GenerationTurn) -> SamplingParams:
    """How its tokens were drawn."""
    known = {field.name for field in fields(SamplingParams)}
    values: dict[str, Any] = {k: v for k, v in turn.params.items() if k in known}
    for name in ("stop", "stop_token_ids"):
        values[name] = tuple(values.get(name, ()))
    values["logit_bias"] = tuple((token, bias) for token, bias in values.get("logit_bias", ()))
    return SamplingParams(**values)
