"""When a scheduled prompt is sent: by the clock of a place, in the days that somebody chose. Pure.

Each chosen day has one time. What the clock leaps over in spring comes as much later as it leaps, and
what it shows twice in autumn counts when it is shown first (PEP 495, `fold` 0).
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from chat.schedule_models import Repeats

_MAX_DAYS = 63  # between two of one rhythm there are fewer


@dataclass(frozen=True, slots=True)
class Rhythm:
    """`on` is the day of what is sent once. `weekdays` are ISO's, Monday is 1. `day` is a month's; a
    month that is too short has its last day instead."""

    repeats: str
    at: time
    zone: str
    on: date | None = None
    weekdays: tuple[int, ...] = ()
    day: int = 1

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time later than `moment`, in UTC; None where there is none any more."""
        for day in self._days_from(moment.astimezone(ZoneInfo(self.zone)).date()):
            found = self._time_on(day)
            if found is not None and found > moment:
                return found
        return None

    def _days_from(self, first: date) -> Iterator[date]:
        """That may be meant, the day before among them: a time of it can lie behind midnight, where
        clocks leap there."""
        if self.repeats == Repeats.ONCE:
            yield from [self.on] if self.on else []
            return
        for number in range(-1, _MAX_DAYS):
            try:
                day = first + timedelta(days=number)
            except OverflowError:
                continue
            if self._is_meant(day):
                yield day

    def _is_meant(self, day: date) -> bool:
        if self.repeats == Repeats.WEEKLY:
            return day.isoweekday() in self.weekdays
        if self.repeats == Repeats.MONTHLY:
            return day.day == min(self.day, monthrange(day.year, day.month)[1])
        return True

    def _time_on(self, day: date) -> datetime | None:
        try:
            return datetime.combine(day, self.at, ZoneInfo(self.zone)).astimezone(UTC)
        except OverflowError:
            return None  # at the ends of the calendar


@cache
def zones() -> tuple[str, ...]:
    """IANA's names of places, and UTC; without those that only old programs know."""
    old = ("Etc/", "SystemV/", "US/")
    return ("UTC", *sorted(n for n in _known() if "/" in n and not n.startswith(old)))


def is_zone(name: str) -> bool:
    return name in _known()


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones()) - {"Factory", "localtime"}  # which are no places
