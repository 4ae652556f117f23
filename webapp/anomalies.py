"""Whose last 24 hours are unlike their own fourteen days before: answers, tokens, what was blocked, and
addresses.

A figure is far outside where it is above a floor, below which nobody minds, above three times its mean,
and more than four standard deviations above that. The ledger knows days (UTC): of yesterday the part
counts that is less than 24 hours ago, as if it were spread evenly.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import fmean, pstdev
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from chat.models import Usage
from moderation.decision_models import OUR_OWN
from moderation.models import Decision
from webapp.models import SignIn, User
from webapp.tenancy import as_system

NUM_DAYS = 14
_FLOORS = {"answers": 50.0, "tokens": 100_000.0, "addresses": 5.0, "blocked": 20.0}
_MIN_BLOCKED = 5
_TIMES, _DEVIATIONS = 3, 4
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Signal:
    """Of one person: the last 24 hours, and the mean of a day before. `blocked` is in percent of the
    questions."""

    name: str
    value: float
    mean: float
    is_far: bool


@dataclass(frozen=True, slots=True)
class Unusual:
    user_id: int
    email: str
    signals: tuple[Signal, ...]


def signal(name: str, value: float, past: Sequence[float]) -> Signal:
    """`past` are the values of days before, or one mean of them. Pure."""
    mean, deviation = (fmean(past), pstdev(past)) if past else (0.0, 0.0)
    is_high = value >= _FLOORS[name] and value > _TIMES * mean
    return Signal(name, value, mean, is_high and value > mean + _DEVIATIONS * deviation)


def unusual() -> list[Unusual]:
    """Who has a figure far outside, with those alone; the most first."""
    with as_system():  # sums over everybody's rows, no content
        found = _signals(timezone.now())
        far = {pk: [one for one in own if one.is_far] for pk, own in found.items()}
        emails = dict(
            User.objects.filter(pk__in=[pk for pk, own in far.items() if own])
            .order_by()
            .values_list("pk", "email")
        )
    people = [Unusual(pk, email, tuple(far[pk])) for pk, email in emails.items()]
    return sorted(people, key=lambda one: (-len(one.signals), one.email))


def signals_of(user_id: int) -> list[Signal]:
    """All figures of somebody."""
    with as_system():
        found = _signals(timezone.now(), user_id).get(user_id, [])
    known = {one.name: one for one in found}
    return [known.get(name) or Signal(name, 0.0, 0.0, False) for name in _FLOORS]


def _signals(now: datetime, user_id: int | None = None) -> dict[int, list[Signal]]:
    only = Q() if user_id is None else Q(owner=user_id)
    found: dict[int, list[Signal]] = defaultdict(list)
    for owner, own in (*_of_ledger(now, only), *_of_sign_ins(now, user_id), *_blocked(now, only)):
        found[owner].append(own)
    return found


def _of_ledger(now: datetime, only: Q) -> Iterable[tuple[int, Signal]]:
    today = now.astimezone(UTC).date()
    of_yesterday = 1 - (now - datetime.combine(today, datetime.min.time(), UTC)) / _DAY
    rows = Usage.objects.filter(only, day__gte=today - (NUM_DAYS + 1) * _DAY)
    sums = rows.order_by().values("owner", "day", "owner__date_joined")
    by_owner: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in sums.annotate(
        answers=Sum("num_requests"), tokens=Sum(F("prompt_tokens") + F("completion_tokens"))
    ):
        by_owner[row["owner"]][(today - row["day"]).days] = row
    for owner, days in by_owner.items():
        joined = next(iter(days.values()))["owner__date_joined"]
        past = range(2, 2 + _days_of(joined, now))
        for name in ("answers", "tokens"):
            values = {ago: float(row[name]) for ago, row in days.items()}
            value = values.get(0, 0.0) + of_yesterday * values.get(1, 0.0)
            yield owner, signal(name, round(value), [values.get(ago, 0.0) for ago in past])


def _of_sign_ins(now: datetime, user_id: int | None) -> Iterable[tuple[int, Signal]]:
    """Distinct addresses of those that have begun."""
    rows = SignIn.objects.filter(created_at__gt=now - (NUM_DAYS + 1) * _DAY)
    rows = rows if user_id is None else rows.filter(user=user_id)
    lately = rows.filter(created_at__gt=now - _DAY).order_by().values_list("user")
    num_lately = dict(lately.annotate(number=Count("address", distinct=True)))
    before = rows.filter(created_at__lte=now - _DAY, user__in=num_lately).order_by()
    by_day = before.annotate(day=TruncDate("created_at")).values("user", "user__date_joined", "day")
    past: dict[int, list[float]] = defaultdict(list)
    for row in by_day.annotate(number=Count("address", distinct=True)):
        past[row["user"]].append(float(row["number"]))
    for owner, number in num_lately.items():
        quiet = [0.0] * max(0, NUM_DAYS - len(past[owner])) if past[owner] else []
        yield owner, signal("addresses", number, past[owner] + quiet)


def _blocked(now: datetime, only: Q) -> Iterable[tuple[int, Signal]]:
    """In percent, which a few do not tell: they are never far outside."""
    questions = Decision.objects.filter(only, stage="input", is_dry_run=False)
    questions = questions.exclude(source__in=OUR_OWN).order_by()
    is_blocked = Count("pk", filter=Q(action="block"))
    lately = questions.filter(created_at__gt=now - _DAY).values("owner")
    rows = {row["owner"]: row for row in lately.annotate(asked=Count("pk"), blocked=is_blocked)}
    many = {pk for pk, row in rows.items() if row["blocked"] >= _MIN_BLOCKED}
    period = (now - (NUM_DAYS + 1) * _DAY, now - _DAY)
    compared = rows if only else many  # else the means of everybody would be worked out
    before = questions.filter(created_at__range=period, owner__in=compared).values("owner")
    past = {row["owner"]: row for row in before.annotate(asked=Count("pk"), blocked=is_blocked)}
    for owner in compared:
        mean = [_percent(past[owner])] if owner in past else []
        found = signal("blocked", round(_percent(rows[owner]), 1), mean)
        yield owner, replace(found, is_far=found.is_far and owner in many)


def _percent(row: dict[str, Any]) -> float:
    return float(100 * row["blocked"] / row["asked"])


def _days_of(joined: datetime, now: datetime) -> int:
    """How many days before yesterday somebody has been here."""
    return min(NUM_DAYS, max(0, (now - joined).days - 1))
