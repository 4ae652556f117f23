"""Points, their decay, and what they lead to."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from moderation.strikes import FIRST_COOL_DOWN, MAX_COOL_DOWN, Limits, standing

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
LIMITS = Limits(timedelta(days=7), cool_down=3)
PAST = st.lists(
    st.tuples(st.floats(0, 5), st.integers(0, 60 * 24 * 30)).map(
        lambda one: (one[0], NOW - timedelta(minutes=one[1]))
    ),
    max_size=12,
)


def test_half_of_a_strike_is_gone_after_a_half_life() -> None:
    assert standing([(4, NOW - LIMITS.half_life)], NOW, LIMITS).points == 2.0


def test_nothing_leads_to_nothing() -> None:
    assert standing([], NOW, LIMITS).points == 0
    assert standing([(2.9, NOW)], NOW, LIMITS).waits_until is None


def test_a_cool_down_begins_with_the_strike_and_ends() -> None:
    strikes = [(3.0, NOW)]
    assert standing(strikes, NOW, LIMITS).waits_until == NOW + FIRST_COOL_DOWN
    assert standing(strikes, NOW + FIRST_COOL_DOWN, LIMITS).waits_until is None
    assert standing([(5.0, NOW)], NOW, LIMITS).waits_until == NOW + 4 * FIRST_COOL_DOWN


def test_strikes_of_the_same_hour_count_in_full() -> None:
    strikes = [(1.0, NOW - timedelta(minutes=20 * number)) for number in range(3)]
    assert standing(strikes, NOW, LIMITS).waits_until == NOW + FIRST_COOL_DOWN
    days = [(1.0, NOW - timedelta(days=number)) for number in range(3)]
    assert standing(days, NOW, LIMITS).waits_until is None


def test_too_much_is_told_until_it_has_decayed() -> None:
    limits = Limits(timedelta(days=7), cool_down=3, suspend=10)
    assert not standing([(9.0, NOW)], NOW, limits).is_too_much
    assert standing([(9.0, NOW), (1.0, NOW)], NOW, limits).is_too_much
    assert not standing([(10.0, NOW - timedelta(days=1))], NOW, limits).is_too_much


def test_limits_of_zero_are_none() -> None:
    never = Limits(timedelta(days=7), cool_down=0)
    assert standing([(1e6, NOW)], NOW, never).waits_until is None
    assert not standing([(1e6, NOW)], NOW, never).is_too_much


@given(PAST)
def test_points_are_the_sum_of_what_is_left_of_each(strikes: list[tuple[float, datetime]]) -> None:
    each = sum(points * 0.5 ** ((NOW - at) / LIMITS.half_life) for points, at in strikes)
    found = standing(strikes, NOW, LIMITS)
    assert abs(found.points - each) < 1e-6
    if found.waits_until:
        assert found.waits_until <= NOW + MAX_COOL_DOWN
