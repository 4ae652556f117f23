"""What people type into the search is read as they meant it, and nothing makes it fail."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from chat.search_query import FILTERS, MAX_UNITS, Unit, parse

WORDS = st.text("abcdefg東京ก\u0301éß_", min_size=1, max_size=8).filter(str.strip)
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


def quoted(text: str) -> str:
    return f'"{text}"'


@given(st.text(max_size=500))
def test_no_query_fails_and_each_is_read_alike_twice(text: str) -> None:
    query = parse(text, UTC)
    assert query == parse(text, UTC)
    assert len(query.units) <= MAX_UNITS
    assert all(unit.text.strip() for unit in query.units)


@given(
    st.lists(WORDS, max_size=3),
    st.lists(PHRASES, max_size=3),
    st.lists(WORDS, max_size=3),
    st.lists(PHRASES, max_size=3),
    st.lists(PHRASES, max_size=3),
    st.randoms(),
)
def test_what_is_written_is_what_is_read(
    words: list[str],
    phrases: list[str],
    unwanted: list[str],
    tags: list[str],
    folders: list[str],
    random: object,
) -> None:
    pieces = [*words, *map(quoted, phrases), *(f"-{word}" for word in unwanted)]
    pieces += [f"tag:{quoted(tag)}" for tag in tags] + [f"FOLDER:{quoted(f)}" for f in folders]
    random.shuffle(pieces)  # type: ignore[attr-defined]
    query = parse(" ".join(pieces), UTC)
    expected = [Unit(word) for word in words] + [Unit(phrase, True) for phrase in phrases]
    expected += [Unit(word, is_unwanted=True) for word in unwanted]
    assert sorted(query.units, key=repr) == sorted(expected, key=repr)
    assert sorted(query.tags) == sorted(tags)
    assert sorted(query.folders) == sorted(folders)
    assert query.problems == []


@given(st.dates(date(1, 2, 1), date(9998, 12, 30)), st.sampled_from(["UTC", "Asia/Tokyo"]))
def test_before_and_after_a_day_leave_out_just_that_day(day: date, zone: str) -> None:
    tz = ZoneInfo(zone)
    query = parse(f"before:{day.isoformat()} after:{day.isoformat()}", tz)
    assert query.before == datetime.combine(day, time.min, tz)
    assert query.after == datetime.combine(day + timedelta(days=1), time.min, tz)


def test_a_month_and_a_year_are_moments_too() -> None:
    query = parse("before:2026-03 after:2025", UTC)
    assert query.before == datetime(2026, 3, 1, tzinfo=UTC)
    assert query.after == datetime(2026, 1, 1, tzinfo=UTC)
    assert parse("after:2026-12", UTC).after == datetime(2027, 1, 1, tzinfo=UTC)


def test_a_filter_that_is_not_understood_is_told_and_filters_nothing() -> None:
    for text in ("before:soon", "after:2026-13", "after:9999", "pinned:maybe", "tag:", 'folder:""'):
        query = parse(f"word {text}", UTC)
        assert len(query.problems) == 1, text
        assert query.problems[0].startswith(text.split(":")[0])
        assert not query.has_filters
        assert query.units == [Unit("word")]


def test_choices() -> None:
    assert parse("pinned: archived:no", UTC).pinned is True
    assert parse("pinned: archived:no", UTC).archived is False
    assert not set(FILTERS) & {"http", "https"}
    assert parse("https://a.b/c?d=e", UTC).units == [Unit("https://a.b/c?d=e")]
    assert parse("time:12:30", UTC).units == [Unit("time:12:30")]


def test_a_quotation_mark_that_nobody_closed_closes_at_the_end() -> None:
    assert parse('a "b c', UTC).units == [Unit("a"), Unit("b c", True)]
