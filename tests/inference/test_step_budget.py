"""How much is read in a step beside those who write, and whose turn it is."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import Priority
from inference.scheduler import Scheduler
from inference.waiting import LEAST_CHUNK_TOKENS, Estimates
from tests.inference.planning import Books, a_scheduler, a_sequence, run_step


@given(calm_s=st.floats(0.05, 2), token_s=st.floats(1e-4, 0.02))
def test_a_chunk_beside_writers_does_not_double_their_step(calm_s: float, token_s: float) -> None:
    """A machine whose step takes so long, and so much longer for each token that is read."""
    estimates = Estimates()
    assert estimates.chunk_tokens(1) is None, "nothing is known yet"
    for _ in range(30):
        estimates.learn_step(1, calm_s)
        num_read = max(LEAST_CHUNK_TOKENS, int(estimates.chunk_tokens(1) or 256))
        estimates.learn_step(1 + num_read, calm_s + num_read * token_s, num_read)
    assert estimates.chunk_tokens(1) is not None
    chunk = max(LEAST_CHUNK_TOKENS, int(estimates.chunk_tokens(1) or 0))
    assert chunk == LEAST_CHUNK_TOKENS or chunk * token_s <= calm_s
    assert chunk == LEAST_CHUNK_TOKENS or chunk * token_s > 0.3 * calm_s - token_s, (
        "no time is wasted either"
    )


def test_the_three_tokens_that_a_worker_begins_with_do_not_tell_what_reading_costs() -> None:
    """They took a whole step, as hundreds would nearly have."""
    estimates = Estimates()
    estimates.learn_step(3, 0.02, num_read=3)
    estimates.learn_step(1, 0.02)
    estimates.learn_step(512, 0.512, num_read=512)
    assert estimates.reading_s == pytest.approx(0.001, rel=0.3)


def test_steps_that_nobody_notices_may_be_longer() -> None:
    estimates = Estimates()
    estimates.learn_step(1, 0.002)
    estimates.learn_step(100, 0.05, num_read=100)
    assert int(estimates.chunk_tokens(1) or 0) == 46


def test_guessing_ahead_counts_for_the_rate_and_not_for_a_calm_step() -> None:
    estimates = Estimates()
    estimates.learn_step(3, 0.1, guessing_s=0.2)
    assert estimates.calm_step_s == 0.1
    assert estimates.tokens_per_s == pytest.approx(10)


def test_who_reads_alone_has_the_whole_budget() -> None:
    scheduler = a_scheduler()
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 1.0, num_read=100)
    assert scheduler.estimates.chunk_tokens(1) == pytest.approx(4)
    scheduler.add(a_sequence("first", 20, max_tokens=50))
    assert [n for _, n in run_step(scheduler)] == [20]
    scheduler.add(a_sequence("second", 30, max_tokens=50))
    assert [n for _, n in run_step(scheduler)] == [1, 4]


@given(
    num_writers=st.lists(st.integers(1, 16), min_size=4, max_size=60),
    token_s=st.floats(1e-4, 0.02),
    weights_s=st.floats(0.005, 0.5),
    num_wrong=st.integers(0, 8),
)
def test_new_writers_are_not_taken_for_the_cost_of_reading(
    num_writers: list[int], token_s: float, weights_s: float, num_wrong: int
) -> None:
    """On a machine whose step is its weights and so much for each token, whosever, guesses too."""
    estimates = Estimates()
    estimates.learn_step(1, weights_s + (1 + num_wrong) * token_s, num_wrong=num_wrong)
    for number, writers in enumerate(num_writers):
        num_read = 0 if number % 32 == 31 else 8
        rows = writers + num_read
        estimates.learn_step(rows, weights_s + rows * token_s, num_read)
    if estimates.reading_s is not None:
        assert estimates.reading_s == pytest.approx(token_s, rel=0.01)
        most = estimates.calm_beside(16)
        assert most == pytest.approx(weights_s + 16 * token_s, rel=0.01)


def test_where_writers_have_left_a_slow_step_is_not_the_price_of_a_token() -> None:
    """Sixteen wrote, four are left; steps vary by a quarter."""
    rng = random.Random(7)
    estimates = Estimates()
    estimates.learn_step(512, 512 * 0.0025, num_read=512)
    worst = 0.0
    for _ in range(40):
        estimates.learn_step(16, 0.02 + 16 * 0.0025)
        for _ in range(31):
            took_s = (0.02 + 17 * 0.0025) * rng.uniform(0.9, 1.25)
            estimates.learn_step(17, took_s, 13)
            assert estimates.reading_s is not None
            worst = max(worst, estimates.reading_s)
    assert worst < 0.004


@pytest.mark.parametrize(
    ("calm_s", "token_s", "crowd", "num_tokens"),
    [
        (0.1, 0.001, 0.5, 40),
        (0.1, 0.001, 1.0, 40),
        (0.1, 0.001, 2.0, 80),
        (0.1, 0.001, 9.0, 200),  # two calm steps, as for an urgent one
        (0.02, 0.001, 2.0, 16),
        (0.02, 0.001, 13.0, 100),  # a tenth of a second
    ],
)
def test_where_more_wait_to_be_read_than_write_more_is_read(
    calm_s: float, token_s: float, crowd: float, num_tokens: int
) -> None:
    estimates = Estimates(calm_step_s=calm_s, reading_s=token_s)
    assert abs((estimates.chunk_tokens(1, crowd=crowd) or 0) - num_tokens) <= 1


def test_of_sixteen_that_come_together_the_first_are_not_done_before_the_last_is_read() -> None:
    """On a machine that reads a token in 3 ms beside steps of 25."""
    scheduler = a_scheduler(
        Books(capacity_tokens=20_000), max_num_sequences=16, step_budget_tokens=256
    )
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.025, 0.003
    sequences = [a_sequence(f"s{n}", 32, max_tokens=64, user=f"u{n}") for n in range(16)]
    for sequence in sequences:
        scheduler.add(sequence)
    num_steps = 0
    while not all(sequence.num_output for sequence in sequences):
        run_step(scheduler)
        num_steps += 1
    assert num_steps < 60
    assert max(sequence.num_output for sequence in sequences) < 60


def test_who_finds_no_place_makes_nobody_wait() -> None:
    scheduler = a_scheduler(
        Books(capacity_tokens=20_000), max_num_sequences=3, step_budget_tokens=256
    )
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.025, 0.0005
    for name in ("a", "b"):
        scheduler.add(a_sequence(name, 4, max_tokens=500, user=name))
    run_step(scheduler)
    scheduler.add(a_sequence("long", 5000, user="c"))
    before = {s.id: n for s, n in run_step(scheduler)}["long"]
    for number in range(16):
        scheduler.add(a_sequence(f"w{number}", 30, user=f"u{number}"))
    assert {s.id: n for s, n in run_step(scheduler)}["long"] <= before


@pytest.mark.parametrize("newcomer", ["background", "interactive"])
def test_a_long_prompt_does_not_hold_up_a_short_one(newcomer: Priority) -> None:
    """Beside a writer, where little is read in a step."""
    books = Books(capacity_tokens=20_000)
    scheduler = a_scheduler(books, step_budget_tokens=256)
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 0.5, num_read=100)  # 10 tokens in 50 ms
    scheduler.add(a_sequence("writer", 4))
    run_step(scheduler)
    scheduler.add(a_sequence("long", 5000))
    for _ in range(3):
        run_step(scheduler)
    scheduler.add(short := a_sequence("short", 20, newcomer))
    num_steps = 0
    while not short.num_output:
        run_step(scheduler)
        num_steps += 1
    assert num_steps <= 5
    read = scheduler.running["long"].num_computed
    for _ in range(10):
        run_step(scheduler)
    assert scheduler.running["long"].num_computed >= read + 9 * 8, "and it is read on itself"


def test_who_writes_is_measured_again_while_others_read() -> None:
    scheduler = a_scheduler(Books(capacity_tokens=20_000), step_budget_tokens=256)
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 0.5, num_read=100)
    scheduler.add(a_sequence("writer", 4))
    run_step(scheduler)
    scheduler.add(a_sequence("long", 5000))
    calm = [len(run_step(scheduler)) == 1 for _ in range(64)]
    assert sum(calm) == 2


def _crowd(num: int) -> Scheduler:
    """A user's many long prompts, half of them in places, being read."""
    scheduler = a_scheduler(
        Books(capacity_tokens=100_000), max_num_sequences=num, step_budget_tokens=256
    )
    for number in range(2 * num):
        scheduler.add(a_sequence(f"greedy {number}", 1000, user="greedy"))
    run_step(scheduler)
    return scheduler


def test_a_users_only_prompt_is_not_read_in_the_crumbs_of_anothers() -> None:
    scheduler = _crowd(4)
    scheduler.add(modest := a_sequence("modest", 250, user="modest"))
    assert [(s.id, n) for s, n in run_step(scheduler)] == [("modest", 250)]
    assert modest.num_output == 1


def test_a_users_only_short_prompt_beside_writers_is_read_in_steps_of_its_own() -> None:
    """Else it would have half of steps that are short already, for those who write."""
    scheduler = _crowd(4)
    scheduler.estimates.learn_step(1, 0.02)
    scheduler.estimates.learn_step(100, 0.1, num_read=100)
    while not any(s.is_decoding for s in scheduler.running.values()):
        run_step(scheduler)
    scheduler.add(a_sequence("modest", 128, user="modest"))
    read = []
    while len(read) < 4:
        read.append({s.id: n for s, n in run_step(scheduler) if not s.num_output})
    assert [plan.get("modest") for plan in read[:3]] == [40, 40, 40]
    assert all(set(plan) == {"modest"} for plan in read[:3])


def test_one_newcomer_after_the_other_does_not_stop_the_crowd() -> None:
    scheduler = _crowd(4)
    read = Counter[str]()
    for number in range(40):
        scheduler.add(a_sequence(f"new {number}", 250, user=f"user {number}", max_tokens=1))
        for sequence, num_tokens in run_step(scheduler):
            read[sequence.request.user == "greedy"] += num_tokens
            if sequence.num_output:
                scheduler.remove(sequence)
    assert read[True] >= 40 // 2 * 256 // 2 - 256, "in every other step they have half"


def test_a_long_only_prompt_shares_with_the_crowd() -> None:
    scheduler = _crowd(4)
    scheduler.add(a_sequence("modest", 3000, user="modest"))
    plans = [{s.id: n for s, n in run_step(scheduler)} for _ in range(6)]
    assert plans[0] == {"modest": 256}
    assert all(plan["modest"] == 128 and sum(plan.values()) == 256 for plan in plans[1:])


def test_steps_are_short_while_others_wait_to_be_read() -> None:
    scheduler = a_scheduler(Books(capacity_tokens=100_000), step_budget_tokens=256)
    scheduler.estimates.learn_step(1000, 0.5, num_read=1000)
    scheduler.add(a_sequence("first", 1000))
    assert [n for _, n in scheduler.plan()] == [256]
    scheduler.add(a_sequence("second", 1000))
    assert sum(n for _, n in scheduler.plan()) == 100
    for _ in range(50):
        scheduler.estimates.learn_step(100, 10.0, num_read=100)
    assert sum(n for _, n in scheduler.plan()) == 64, "the weights are read for no fewer"


def test_a_lower_class_is_not_read_first() -> None:
    scheduler = _crowd(4)
    scheduler.add(modest := a_sequence("modest", 250, "background", user="modest"))
    run_step(scheduler)
    assert modest.num_computed < 250
