"""When scheduled prompts are due: every chosen day once, by the clock of a place."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.schedule_times import Rhythm, is_zone, zones

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe")
# Samoa left out a day in 2011.
moments = st.integers(0, 25 * 365 * 86_400).map(
    lambda s: datetime(2011, 1, 1, tzinfo=UTC) + timedelta(seconds=s)
)
clock = st.times().map(lambda at: at.replace(second=0, microsecond=0))
rhythms = st.builds(
    Rhythm,
    st.sampled_from(["daily", "weekly", "monthly"]),
    clock,
    st.sampled_from(ZONES),
    weekdays=st.lists(st.integers(1, 7), min_size=1, unique=True).map(tuple),
    day=st.integers(1, 31),
)


def times(rhythm: Rhythm, moment: datetime, number: int) -> list[datetime]:
    found = []
    for _ in range(number):
        following = rhythm.next_after(moment)
        assert following is not None
        found.append(moment := following)
    return found


@given(rhythms, moments)
def test_times_lie_ahead_on_days_that_were_chosen(rhythm: Rhythm, moment: datetime) -> None:
    zone = ZoneInfo(rhythm.zone)
    found = times(rhythm, moment, 10)
    assert all(a < b for a, b in pairwise([moment, *found]))
    for at in found:
        local = at.astimezone(zone)
        meant = datetime.combine(local.date(), rhythm.at, zone)
        is_leapt_over = meant.astimezone(UTC).astimezone(zone).time() != rhythm.at
        day = local.date()
        if local.time() != rhythm.at:
            # The clock leapt over it, and perhaps over midnight.
            before = datetime.combine(day - timedelta(days=1), rhythm.at, zone)
            assert is_leapt_over or before.astimezone(UTC) == at
            continue
        if rhythm.repeats == "weekly":
            assert day.isoweekday() in rhythm.weekdays
        if rhythm.repeats == "monthly":
            is_last = (day + timedelta(days=1)).day == 1
            assert day.day == rhythm.day or (is_last and day.day < rhythm.day)


@given(clock, st.sampled_from(ZONES), moments)
def test_no_day_is_left_out(at: time, zone: str, moment: datetime) -> None:
    found = times(Rhythm("daily", at, zone), moment, 40)
    gaps = [b - a for a, b in pairwise(found)]
    assert max(gaps) <= timedelta(hours=49), "Samoa's left-out day has none of its own"
    assert min(gaps) >= timedelta(hours=22)


@pytest.mark.parametrize(
    ("after", "due"),
    [
        ("2027-03-27T12:00+00:00", "2027-03-28T01:30+00:00"),  # 03:30, since there is no 02:30
        ("2027-03-28T01:30+00:00", "2027-03-29T00:30+00:00"),
        ("2026-10-24T12:00+00:00", "2026-10-25T00:30+00:00"),  # the first 02:30 of two
        ("2026-10-25T00:30+00:00", "2026-10-26T01:30+00:00"),
    ],
)
def test_the_clocks_are_changed(after: str, due: str) -> None:
    rhythm = Rhythm("daily", time(2, 30), "Europe/Berlin")
    assert rhythm.next_after(datetime.fromisoformat(after)) == datetime.fromisoformat(due)


def test_a_month_that_is_too_short_has_its_last_day() -> None:
    found = times(Rhythm("monthly", time(8), "UTC", day=31), datetime(2027, 1, 1, tzinfo=UTC), 4)
    assert [at.date() for at in found] == [
        date(2027, 1, 31), date(2027, 2, 28), date(2027, 3, 31), date(2027, 4, 30),
    ]  # fmt: skip


def test_once_is_once() -> None:
    rhythm = Rhythm("once", time(8), "Asia/Tokyo", on=date(2027, 1, 1))
    due = datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert rhythm.next_after(due - timedelta(days=90)) == due
    assert rhythm.next_after(due) is None


def test_places_are_named() -> None:
    assert {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} <= set(zones())
    assert all(map(is_zone, zones()))
    for name in (
        "",
        "Factory",
        "localtime",
        "Berlin",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe/Berlin\0",
    ):
        assert not is_zone(name)
