"""The engine turns of an answer as rows: all that is needed to ask the same again. Synchronous."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any
from uuid import UUID

from chat.events import Delta, LogEvent, Started
from chat.models import GenerationTurn
from inference import SamplingParams


def begun_by(events: Iterable[LogEvent]) -> list[dict[str, Any]]:
    """What the engine was asked in each turn that begins among the events, perhaps anew."""
    begun = {
        event.turn: {
            "index": event.turn,
            "params": asdict(event.params) if event.params else {},
            "prompt_ids": list(event.prompt_ids),
        }
        for event in events
        if isinstance(event, Started) and event.prompt_ids
    }
    return list(begun.values())


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


def params_of(turn: GenerationTurn) -> SamplingParams:
    """How its tokens were drawn."""
    known = {field.name for field in fields(SamplingParams)}
    values: dict[str, Any] = {k: v for k, v in turn.params.items() if k in known}
    for name in ("stop", "stop_token_ids"):
        values[name] = tuple(values.get(name, ()))
    values["logit_bias"] = tuple((token, bias) for token, bias in values.get("logit_bias", ()))
    return SamplingParams(**values)
