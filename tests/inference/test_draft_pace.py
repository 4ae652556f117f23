"""When a draft pays, by given numbers: no clock runs here."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.draft_pace import (
    Acceptance,
    Pace,
    StepTimes,
    best_length,
    expected_accepted,
    gained_s,
    tokens_per_s,
)

rates = st.floats(0, 0.99)
times = st.builds(
    StepTimes,
    step_s=st.floats(0.001, 1),
    row_s=st.floats(0, 0.1),
    draft_step_s=st.floats(0.0001, 1),
)


@pytest.mark.parametrize(
    ("rate", "draft_step_s", "length"),
    [
        (0.8, 0.1, 6),  # 3.95 tokens in 1.6 steps; with 5, 3.69 in 1.5
        (0.8, 0.05, 8),
        (0.5, 0.1, 2),
        (0.5, 0.6, 0),  # a token that comes half of the time, for more than half of a step
        (0.99, 1.0, 0),  # a small model that is as slow as the large one
        (0.05, 0.01, 0),  # below the margin
        (0.3, 0.01, 3),
    ],
)
def test_how_far_a_guess_pays(rate: float, draft_step_s: float, length: int) -> None:
    found = best_length([rate], [8], 1, StepTimes(1.0, 0.0, draft_step_s))
    assert found == length


def test_those_who_get_nothing_of_a_draft_wait_for_it() -> None:
    """One good guesser among many writers: its gain is not worth their time."""
    costly = StepTimes(1.0, 0.0, 0.3)
    assert best_length([0.9], [8], 1, costly) > 0
    assert best_length([0.9], [8], 4, costly) == 0
    assert best_length([0.9] * 4, [8] * 4, 4, costly) == best_length([0.9], [8], 1, costly)


@given(st.lists(st.tuples(rates, st.integers(0, 8)), max_size=4), st.integers(0, 3), times)
def test_no_other_length_is_better(
    drafts: list[tuple[float, int]], num_others: int, times: StepTimes
) -> None:
    own, mosts = [rate for rate, _ in drafts], [most for _, most in drafts]
    num_writing = len(drafts) + num_others or 1
    best = best_length(own, mosts, num_writing, times)

    def speed(length: int) -> float:
        return tokens_per_s(own, [min(length, most) for most in mosts], num_writing, times)

    fastest = max(speed(length) for length in range(9))
    if best:
        assert speed(best) == fastest > speed(0)
    else:
        assert fastest <= 1.0501 * speed(0)


@given(rates, st.integers(0, 8))
def test_the_expected_number_is_that_of_the_paper(rate: float, length: int) -> None:
    """(1 - a^(k + 1)) / (1 - a), with the token that the step gives anyway."""
    assert 1 + expected_accepted(rate, length) == pytest.approx(
        (1 - rate ** (length + 1)) / (1 - rate)
    )


@given(rates, st.floats(0, 1000), times)
def test_nothing_is_ever_lost_by_what_is_expected(
    rate: float, num_left: float, times: StepTimes
) -> None:
    assert gained_s(rate, num_left, times) >= -1e-9


def _pace(step_s: float, draft_step_s: float, reading_s: float | None = None) -> Pace:
    pace = Pace()
    pace.learn_step(step_s, 0)
    pace.learn_draft_step(draft_step_s, 0)
    pace.reading_s = reading_s
    return pace


def test_nothing_is_guessed_until_a_step_is_known_and_then_it_is_tried() -> None:
    pace = Pace()
    assert pace.length([0.7], [8], 1) == 0
    pace.learn_step(1.0, 0)
    assert pace.length([0.7], [8], 1) > 0
    assert pace.length([], [], 1) == 0


def test_what_does_not_pay_is_tried_again_now_and_then() -> None:
    pace = _pace(1.0, 2.0)
    tried = [pace.length([0.9], [8], 1) for _ in range(1000)]
    assert 1000 / 100 < sum(tried) < 1000 / 50


def test_a_step_without_drafts_is_wanted_now_and_then() -> None:
    pace = _pace(1.0, 0.1)
    for _ in range(1000):
        if pace.is_calm_due:
            break
        assert pace.length([0.9], [8], 1)
        pace.learn_step(1.5, 5)
    assert pace.is_calm_due
    assert pace.row_s == pytest.approx(0.1, rel=0.01)
    pace.learn_step(1.0, 0)
    assert not pace.is_calm_due


def test_a_long_prompt_is_read_for_a_long_answer_only() -> None:
    pace = _pace(1.0, 0.1, reading_s=0.02)
    assert pace.pays_to_read(2000, 0.8, num_left=300)
    assert not pace.pays_to_read(2000, 0.8, num_left=10)
    assert not pace.pays_to_read(2000, 0.02, num_left=300)
    assert not _pace(1.0, 1.0, reading_s=0.02).pays_to_read(30, 0.9, num_left=10_000)


def test_a_chunk_takes_half_a_step() -> None:
    assert _pace(1.0, 0.1, reading_s=0.005).chunk_tokens() == 100
    assert _pace(0.001, 0.1, reading_s=1.0).chunk_tokens() == 16
    assert Pace().chunk_tokens() == 64


def test_poor_guesses_rest_for_longer_and_longer() -> None:
    acceptance, asked = Acceptance(0.7), []
    for num_tokens in range(4000):
        if not acceptance.is_paused(num_tokens):
            asked.append(num_tokens)
            acceptance.learn(acceptance.most, 0, num_tokens)
    assert len(asked) < 4000 / 50
    gaps = [after - before for before, after in pairwise(asked)]
    assert max(gaps) == 768
    acceptance.learn(2, 2, 4000)
    assert acceptance.most == 3, "it shrank to one, and grows again"


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), max_size=200))
def test_a_rate_is_a_share_and_a_length_within_its_bounds(
    drafts: list[tuple[int, int]],
) -> None:
    acceptance = Acceptance(0.5)
    for number, (num_drafted, num_accepted) in enumerate(drafts):
        acceptance.learn(num_drafted, min(num_drafted, num_accepted), number)
        assert 0 <= acceptance.rate <= 1
        assert 1 <= acceptance.most <= 8
