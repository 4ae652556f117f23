"""What blocked questions lead to: their author waits a while, or is suspended. Pure.

Points lose half of their weight in every half-life, so that what somebody wrote last month does not
count as what they write now. Source of the decay: exponential, as of a radioactive sample.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

MAX_COOL_DOWN = timedelta(hours=24)
FIRST_COOL_DOWN = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Limits:
    """From how many points on answers wait, and the account is suspended; 0: never."""

    half_life: timedelta
    cool_down: float
    suspend: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """`points` as they count now; `waits_until` is the end of a cool-down; `is_too_much` is where an
    account is suspended."""

    points: float = 0.0
    waits_until: datetime | None = None
    is_too_much: bool = False


def standing(strikes: Iterable[tuple[float, datetime]], now: datetime, limits: Limits) -> Standing:
    """Of strikes as (points, when). A cool-down begins with the strike that reached the limit; each
    point beyond it doubles its length."""
    known = sorted((at, points) for points, at in strikes)
    waits_until, total, before = None, 0.0, None
    for at, points in known:
        total = total * _left(at - before, limits) + points if before else points
        before = at
        if _reaches(total, limits.cool_down):
            beyond = min(max(total - limits.cool_down, 0.0), 16.0)
            length = min(MAX_COOL_DOWN, FIRST_COOL_DOWN * 2**beyond)
            waits_until = max(waits_until or at, at + length)
    if before is not None:
        total *= _left(now - before, limits)
    return Standing(
        points=total,
        waits_until=waits_until if waits_until and waits_until > now else None,
        is_too_much=_reaches(total, limits.suspend),
    )


def _reaches(points: float, limit: float) -> bool:
    """To a tenth: three points of the same hour are three, though the first ones have begun to decay."""
    return limit > 0 and round(points, 1) >= limit


def _left(passed: timedelta, limits: Limits) -> float:
    share: float = 0.5 ** (max(passed, timedelta()) / limits.half_life)
    return share
