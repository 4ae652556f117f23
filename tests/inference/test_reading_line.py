"""Steps that read, on a device where they cost something however little they read."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.reading_line import ReadingLine
from inference.scheduler import Scheduler
from inference.waiting import UNNOTICED_S, Estimates
from tests.inference.gpu_simulation import Machine, beside_writers
from tests.inference.planning import Books, a_scheduler, a_sequence, run_plan


@given(
    fixed_s=st.floats(0, 0.05),
    token_s=st.floats(2e-6, 1e-3),
    sizes=st.lists(st.integers(4, 2048), min_size=8, max_size=60),
)
def test_steps_on_a_line_tell_both_of_its_parts(
    fixed_s: float, token_s: float, sizes: list[int]
) -> None:
    line = ReadingLine()
    for size in [*sizes, 16, 2048, 16, 2048]:
        line.learn(size, fixed_s + token_s * size)
        assert line.token_s is not None
        assert line.token_s > 0
        assert line.fixed_s >= -1e-9
    share = token_s * 2048 / (fixed_s + token_s * 2048)
    if share > 0.1:  # less is not told from nothing
        assert line.token_s == pytest.approx(token_s, rel=0.05)
        assert line.fixed_s == pytest.approx(fixed_s, rel=0.05, abs=1e-4)


def test_steps_of_one_size_that_become_dearer_move_what_they_cost_anyway() -> None:
    line = ReadingLine()
    for size in (100, 2000, 100, 2000):
        line.learn(size, 0.02 + 1e-5 * size)
    for _ in range(200):
        line.learn(1000, 0.04 + 1e-5 * 1000)
    assert line.token_s is not None
    assert 2e-6 < line.token_s <= 1e-5 * 1.01, "for less than they cost, so that more tell"
    assert line.fixed_s == pytest.approx(0.04, rel=0.25)


def a_worker(**changes: int) -> Scheduler:
    limits = {"max_num_sequences": 64, "step_budget_tokens": 2048, "is_launched": True}
    return a_scheduler(Books(10**6), **{**limits, **changes})


@pytest.mark.parametrize(
    ("fixed_s", "token_s"), [(0.013, 5e-6), (0.02, 5e-6), (0.03, 5e-6), (0.019, 25e-6)]
)
def test_what_a_step_costs_anyway_does_not_make_it_read_crumbs(
    fixed_s: float, token_s: float
) -> None:
    """By the price of tokens alone the first of these is read in seven steps, the third in hundreds."""
    waits = beside_writers(a_worker(), Machine(fixed_s=fixed_s, token_s=token_s))
    assert waits.steps_of_each <= 4
    longest_s = 1.4 * (0.0018 + 2.3 * max(fixed_s, UNNOTICED_S / 2))
    assert waits.long_step_s <= longest_s, "they wait no longer"
    assert waits.median_first_s <= 3 * (fixed_s + 2000 * token_s) + 0.03


LARGE = Machine(calm_s=0.0057, fixed_s=0.019, token_s=25e-6)  # of the shape of Qwen3-8B
SMALL = Machine()


@pytest.mark.parametrize(
    ("machine", "num_writers", "seed"),
    [
        (replace(SMALL, first_s=0.3), 32, 1),
        (LARGE, 32, 1),
        (replace(LARGE, first_s=0.3), 4, 2),
        (replace(LARGE, first_s=0.02, disturbed=0.003), 32, 1),
        (replace(LARGE, first_s=0.3, fixed_s=0.03), 32, 1),
    ],
)
def test_who_writes_hardly_sees_that_prompts_are_read(
    machine: Machine, num_writers: int, seed: int
) -> None:
    """Whatever the first step took, for a kernel may have been compiled in it, and some later ones."""
    waits = beside_writers(a_worker(), machine, num_writers=num_writers, seed=seed)
    assert waits.gap_p99_s <= 0.06
    assert waits.median_first_s <= 0.3


def test_a_processor_pays_by_the_token() -> None:
    scheduler = a_worker(is_launched=False)
    waits = beside_writers(scheduler, Machine(fixed_s=0.03))
    assert waits.steps_of_each > 20, "there is nothing else that a step of few tokens pays for"


# --- steps that are not what they seem --------------------------------------------------------------


def test_a_first_step_that_compiles_says_nothing_of_the_next() -> None:
    line = ReadingLine()
    line.learn(3, 0.5)
    for size in (100, 2000, 400):
        line.learn(size, 0.02 + 1e-5 * size)
    assert line.fixed_s == pytest.approx(0.02, rel=0.01)


def test_a_step_that_is_disturbed_counts_for_part_of_it() -> None:
    line = ReadingLine()
    for size in (100, 2000) * 10:
        line.learn(size, 0.02 + 1e-5 * size)
    line.learn(1000, 3.0)
    assert line.fixed_s <= 0.026


def test_what_few_tokens_vary_by_is_not_their_price() -> None:
    """Between 16 and 64 tokens a step varies by more than they cost."""
    line, rng = ReadingLine(), random.Random(3)
    for _ in range(40):
        size = rng.randint(16, 64)
        line.learn(size, 0.02 * rng.uniform(0.8, 1.4) + 5e-6 * size)
    assert line.token_s is not None
    assert line.token_s * 2000 < 0.2


def test_steps_with_and_without_writers_lie_on_one_line() -> None:
    estimates = Estimates(has_fixed=True)
    estimates.learn_step(32, 0.012)
    for size in (200, 1500, 400, 900):
        took_s = 0.02 + 1e-5 * size
        estimates.learn_step(size, took_s, size)
        estimates.learn_step(size, took_s, size - 32)
    assert estimates.reading_s == pytest.approx(1e-5, rel=0.02)


def test_the_second_step_beside_writers_shows_what_a_calm_one_takes() -> None:
    """Where something is to be read in each, it would else never be known."""
    scheduler = a_worker()
    scheduler.estimates.learn_step(3, 0.02, 3)
    scheduler.add(a_sequence("writer", 100))
    run_plan(scheduler.plan())
    scheduler.add(a_sequence("long", 100_000))
    plans = [scheduler.plan() for _ in range(2)]
    assert sorted(len(plan) for plan in plans) == [1, 2]
