"""Which classifiers could not be asked lately: what their operator should know before anybody else."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from moderation.models import Decision

_MAX_ROWS = 10_000
"""Of the newest: who reads that so many texts were not judged needs no exact number."""


@dataclass(frozen=True, slots=True)
class Away:
    """`num_texts` verdicts were given without this classifier; `reason` is what it said last."""

    classifier: str
    num_texts: int
    last_at: datetime
    reason: str


def away_since(since: datetime) -> list[Away]:
    """The most missed first. In the system's scope: of everybody's decisions, without their texts."""
    found: dict[str, Away] = {}
    for name, at, reason in _failures(since):
        newest = found.get(name, Away(name, 0, at, reason))
        found[name] = Away(name, newest.num_texts + 1, newest.last_at, newest.reason)
    return sorted(found.values(), key=lambda one: (-one.num_texts, one.classifier))


def _failures(since: datetime) -> Iterator[tuple[str, datetime, str]]:
    """The newest first."""
    rows = Decision.objects.filter(created_at__gte=since).exclude(failed=[]).order_by("-created_at")
    for at, failed in rows.values_list("created_at", "failed")[:_MAX_ROWS]:
        for one in failed:
            yield one["classifier"], at, one["reason"]
