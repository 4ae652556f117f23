"""Steps that read, on a device where they cost something however little they read."""

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import GenerateRequest, SamplingParams
from inference.reading_line import ReadingLine
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from inference.waiting import UNNOTICED_S
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


def test_steps_of_one_size_keep_the_price_of_a_token_and_move_the_rest() -> None:
    line = ReadingLine()
    for size in (100, 2000, 100, 2000):
        line.learn(size, 0.02 + 1e-5 * size)
    for _ in range(200):
        line.learn(1000, 0.04 + 1e-5 * 1000)
    assert line.token_s == pytest.approx(1e-5, rel=0.3)
    assert line.fixed_s == pytest.approx(0.04, rel=0.1)


def beside_writers(
    scheduler: Scheduler, *, fixed_s: float, token_s: float
) -> tuple[float, float, float]:
    """32 write, and four prompts of 2,000 tokens come in a second: the median time to a first token, in
    how many steps a prompt is read, and how long the longest of those are (95th percentile).

    Steps take what an H200 takes for a model of .6 billion weights, as far as `fixed_s` and `token_s`
    do not tell, and vary by a third."""
    rng = random.Random(1)
    for number in range(32):
        scheduler.add(a_sequence(f"writer {number}", 100, max_tokens=10**6))
    now_s, took, came_s = 0.0, list[float](), [1.0 + 0.25 * n for n in range(30)]
    waits_s: dict[str, float] = {}
    num_sent = 0
    while len(waits_s) < len(came_s) and now_s < 60:
        while num_sent < len(came_s) and came_s[num_sent] <= now_s:
            params = SamplingParams(max_tokens=20)
            prompt = (num_sent,) * 2000
            scheduler.add(Sequence(GenerateRequest(str(num_sent), "m", prompt, params)))
            num_sent += 1
        plan = scheduler.plan()
        num_read = sum(num for sequence, num in plan if not sequence.is_decoding)
        num_tokens = sum(num for _, num in plan)
        took_s = fixed_s + token_s * num_tokens if num_read else 0.0018
        took_s *= rng.uniform(0.8, 1.4)
        run_plan(plan)
        now_s += took_s
        took += [took_s] if num_read and num_sent else []
        scheduler.estimates.learn_step(num_tokens, took_s, num_read)
        for sequence, _ in plan:
            if sequence.id.isdigit() and sequence.num_output:
                waits_s.setdefault(sequence.id, now_s - came_s[int(sequence.id)])
            if sequence.num_output >= sequence.request.params.max_tokens:
                scheduler.remove(sequence)
    missing = [60.0] * (len(came_s) - len(waits_s))
    waits = median([*waits_s.values(), *missing])
    return waits, len(took) / len(came_s), sorted(took)[int(0.95 * len(took))]


@pytest.mark.parametrize(
    ("fixed_s", "token_s"), [(0.013, 5e-6), (0.02, 5e-6), (0.03, 5e-6), (0.019, 25e-6)]
)
def test_what_a_step_costs_anyway_does_not_make_it_read_crumbs(
    fixed_s: float, token_s: float
) -> None:
    """By the price of tokens alone the first of these is read in seven steps, the third in hundreds."""
    limits = {"max_num_sequences": 64, "step_budget_tokens": 2048}
    scheduler = a_scheduler(Books(10**6), is_launched=True, **limits)
    wait_s, num_steps, longest_s = beside_writers(scheduler, fixed_s=fixed_s, token_s=token_s)
    assert num_steps <= 4
    assert longest_s <= 1.4 * (0.0018 + 2.3 * max(fixed_s, UNNOTICED_S / 2)), "they wait no longer"
    assert wait_s <= 3 * (fixed_s + 2000 * token_s) + 0.03


def test_a_processor_pays_by_the_token() -> None:
    limits = {"max_num_sequences": 64, "step_budget_tokens": 2048}
    _, num_steps, _ = beside_writers(
        a_scheduler(Books(10**6), **limits), fixed_s=0.03, token_s=5e-6
    )
    assert num_steps > 20, "there is nothing else that a step of few tokens pays for"
