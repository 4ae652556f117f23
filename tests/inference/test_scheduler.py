"""Invariants of the plan, on integers, for any traffic."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import GenerateRequest, Priority, SamplingParams
from inference.fair_share import FairShare
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from inference.waiting import LEAST_CHUNK_TOKENS, Estimates, WaitingQueue

BUDGET = 32
CAPACITY = 300


@dataclass
class Books:
    """A KV cache that only counts."""

    capacity_tokens: int = CAPACITY
    shares_prefixes: bool = True
    reserved: dict[str, int] = field(default_factory=dict)

    @property
    def used_tokens(self) -> int:
        return sum(self.reserved.values())

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        others = sum(n for i, n in self.reserved.items() if i != sequence_id)
        if others + num_tokens > self.capacity_tokens:
            return False
        self.reserved[sequence_id] = max(num_tokens, self.reserved.get(sequence_id, 0))
        return True

    def attach(self, sequence_id: str, token_ids: object, salt: str) -> int:
        return 0

    def release(self, sequence_id: str, token_ids: object = (), salt: str = "") -> None:
        self.reserved.pop(sequence_id, None)


def _sequence(
    name: str,
    num_prompt: int,
    priority: Priority = "interactive",
    user: str = "",
    weight: float = 1.0,
    max_tokens: int = 1000,
) -> Sequence:
    params = SamplingParams(max_tokens=max_tokens)
    prompt = (1,) * num_prompt
    return Sequence(
        GenerateRequest(name, "m", prompt, params, priority=priority, user=user, weight=weight)
    )


def _scheduler(books: Books | None = None, **changes: int) -> Scheduler:
    limits = {
        "max_num_sequences": 4,
        "step_budget_tokens": BUDGET,
        "max_waiting_tokens": 100_000,
    }
    return Scheduler(books or Books(), **{**limits, **changes})


def _run_step(scheduler: Scheduler) -> list[tuple[Sequence, int]]:
    """What the engine does with a plan: compute it, and draw a token where a sequence is due."""
    plan = scheduler.plan()
    for sequence, num_tokens in plan:
        sequence.num_computed += num_tokens
        if sequence.num_pending == 0:
            sequence.append(7, 0.0)
    return plan


@given(
    prompts=st.lists(st.integers(1, 120), min_size=1, max_size=12),
    lengths=st.lists(st.integers(1, 60), min_size=12, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_everybody_ends_and_no_step_exceeds_its_limits(
    prompts: list[int], lengths: list[int]
) -> None:
    scheduler = _scheduler()
    sequences = [_sequence(str(i), n) for i, n in enumerate(prompts)]
    for sequence in sequences:
        assert scheduler.add(sequence)
    for _ in range(5000):
        plan = _run_step(scheduler)
        assert sum(n for _, n in plan) <= BUDGET
        assert len(plan) <= 4
        assert len({s.id for s, _ in plan}) == len(plan)
        for sequence, _ in plan:
            assert sequence.id in scheduler.running
            assert scheduler.kv.reserved[sequence.id] >= sequence.num_computed  # type: ignore[attr-defined]
        for sequence in list(scheduler.running.values()):
            if sequence.num_output >= lengths[int(sequence.id)]:
                scheduler.remove(sequence)
        if scheduler.is_idle:
            break
    assert scheduler.is_idle
    assert scheduler.kv.reserved == {}  # type: ignore[attr-defined]
    assert all(s.num_output >= lengths[int(s.id)] for s in sequences)


def test_a_long_prompt_never_stalls_a_stream() -> None:
    scheduler = _scheduler()
    stream, long = _sequence("stream", 4, max_tokens=60), _sequence("long", 200, max_tokens=9)
    scheduler.add(stream)
    _run_step(scheduler)
    scheduler.add(long)
    while long.num_computed < 200:
        plan = _run_step(scheduler)
        assert (stream, 1) in plan
        assert {s.id: n for s, n in plan}.get("long", 0) <= BUDGET - 1


def test_classes_go_first_and_keep_their_order_within() -> None:
    scheduler = _scheduler()
    for name, priority in [("b1", "background"), ("a1", "api"), ("i1", "interactive")]:
        scheduler.add(_sequence(name, 3, priority))  # type: ignore[arg-type]
    scheduler.add(_sequence("i2", 3))
    scheduler.waiting.sort([])
    assert [s.id for s in scheduler.waiting.sequences] == ["i1", "i2", "a1", "b1"]


def test_the_queue_is_sorted_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody gives way, a lone user is read first, and positions are reported."""
    scheduler = _scheduler(max_num_sequences=2)
    sort, sorts = WaitingQueue.sort, []
    monkeypatch.setattr(WaitingQueue, "sort", lambda *args: sorts.append(sort(*args)))
    for number in range(6):
        scheduler.add(_sequence(f"many{number}", 3, user="many", max_tokens=5))
    _run_step(scheduler)
    scheduler.add(_sequence("lone", 3, user="lone", max_tokens=5))
    _run_step(scheduler)
    assert "lone" in scheduler.running, "it was given a place"
    assert len(list(scheduler.changed_positions())) == 5
    assert len(sorts) == 2


def test_positions_are_reported_once_and_again_when_they_change() -> None:
    scheduler = _scheduler(max_num_sequences=1)
    for name in "abc":
        scheduler.add(_sequence(name, 3))
    _run_step(scheduler)
    assert [(i, q.position) for i, q in scheduler.changed_positions()] == [("b", 1), ("c", 2)]
    assert list(scheduler.changed_positions()) == []
    scheduler.remove(scheduler.running["a"])
    _run_step(scheduler)
    assert [(i, q.position) for i, q in scheduler.changed_positions()] == [("c", 1)]


def test_a_full_queue_refuses_and_forgets() -> None:
    # Three tokens of prompt and the first guess of an answer's length, twice.
    scheduler = _scheduler(max_waiting_tokens=2 * (3 + 256))
    assert [scheduler.add(_sequence(n, 3)) for n in "abc"] == [True, True, False]
    assert scheduler.find("c") is None


def test_a_full_queue_takes_in_whom_another_worker_had_accepted() -> None:
    scheduler = _scheduler(max_waiting_tokens=2 * (3 + 256), max_num_sequences=1)
    assert [scheduler.add(_sequence(n, 3)) for n in "ab"] == [True, True]
    request = _sequence("replay", 3, user="another").request
    assert not scheduler.add(Sequence(replace(request, output_ids=(5, 6)))), "a branch of an answer"
    assert scheduler.add(Sequence(replace(request, is_replay=True)))
    assert not scheduler.add(_sequence("c", 3))
    assert [sequence.id for sequence, _ in _run_step(scheduler)] == ["replay"]


def test_a_queue_full_of_chores_takes_people_in() -> None:
    scheduler = _scheduler(max_waiting_tokens=2 * (3 + 256))
    assert [scheduler.add(_sequence(n, 3, "background")) for n in "abc"] == [True, True, False]
    assert [scheduler.add(_sequence(n, 3)) for n in "def"] == [True, True, False]
    assert not scheduler.add(_sequence("g", 3, "background"))


def test_the_newest_is_preempted_and_computed_again() -> None:
    scheduler = _scheduler()
    old, new = _sequence("old", 140), _sequence("new", 140)
    scheduler.add(old)
    scheduler.add(new)
    while not any(s.id == "new" for s in scheduler.waiting.sequences) or old.num_output < 10:
        _run_step(scheduler)
        if old.num_output > 200:
            raise AssertionError("nobody was preempted")
    assert old.id in scheduler.running
    assert new.num_computed == 0
    scheduler.remove(old)
    before = new.num_output
    while new.num_output == before:
        _run_step(scheduler)
    assert new.num_to_prefill == 140 + before


def _run_until_ended(scheduler: Scheduler, num_output: int) -> dict[str, int]:
    """The step in which each sequence drew its first token; each ends after `num_output`."""
    first: dict[str, int] = {}
    for step in range(20_000):
        _run_step(scheduler)
        for sequence in list(scheduler.running.values()):
            if sequence.num_output:
                first.setdefault(sequence.id, step)
            if sequence.num_output >= num_output:
                scheduler.remove(sequence)
        if scheduler.is_idle:
            return first
    raise AssertionError("not all ended")


def test_one_request_beside_a_users_many_waits_for_one_step_only() -> None:
    scheduler = _scheduler()
    scheduler.kv.capacity_tokens = 10_000
    for number in range(32):
        scheduler.add(_sequence(f"many{number}", 20, user="alice", max_tokens=100))
    for _ in range(10):
        _run_step(scheduler)
    scheduler.add(_sequence("single", 20, user="bob", max_tokens=100))
    plan = _run_step(scheduler)
    assert "single" in {sequence.id for sequence, _ in plan}
    first = _run_until_ended(scheduler, 100)
    assert first["single"] <= 2, "also where the others hold all places"
    assert len(first) == 33


def test_a_higher_class_gets_a_place_at_once() -> None:
    scheduler = _scheduler(max_num_sequences=2)
    for name in ("b1", "b2"):
        scheduler.add(_sequence(name, 10, "background", user="indexer", max_tokens=20))
    _run_step(scheduler)
    scheduler.add(_sequence("i", 10, user="indexer", max_tokens=20))
    assert "i" in {sequence.id for sequence, _ in _run_step(scheduler)}
    assert "b1" in scheduler.running, "the newest of them gave way"
    _run_until_ended(scheduler, 20)


def test_a_higher_class_gets_memory_at_once() -> None:
    """Of chores that fill the cache, as many go as it takes, and no more."""
    scheduler = _scheduler()
    chores = [_sequence(f"b{n}", 60, "background", "indexer", max_tokens=30) for n in range(3)]
    for chore in chores:
        scheduler.add(chore)
    while not all(chore.is_decoding for chore in chores):
        _run_step(scheduler)
    scheduler.add(_sequence("i", 60, user="alice", max_tokens=20))
    assert "i" in {sequence.id for sequence, _ in _run_step(scheduler)}
    assert list(scheduler.running) == ["b0", "b1", "i"]
    _run_until_ended(scheduler, 20)


def test_chores_stay_where_their_memory_would_not_be_enough() -> None:
    scheduler = _scheduler()
    scheduler.add(_sequence("i1", 150, user="alice", max_tokens=20))
    scheduler.add(_sequence("b", 60, "background", "indexer", max_tokens=20))
    while sum(s.is_decoding for s in scheduler.running.values()) < 2:
        _run_step(scheduler)
    scheduler.add(_sequence("i2", 150, user="bob", max_tokens=20))
    _run_step(scheduler)
    assert list(scheduler.running) == ["i1", "b"]
    _run_until_ended(scheduler, 20)


@given(weights=st.lists(st.sampled_from((1.0, 2.0, 4.0)), min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_who_asks_for_all_gets_a_share_by_weight(weights: list[float]) -> None:
    """Everybody always has requests waiting: what they get is as their weights (Jain's index)."""
    scheduler = _scheduler(max_num_sequences=8)
    scheduler.kv.capacity_tokens = 100_000
    served = [0] * len(weights)
    number = 0
    for _ in range(6_000):
        for user, weight in enumerate(weights):
            while sum(s.request.user == str(user) for s in scheduler.waiting.sequences) < 3:
                number += 1
                scheduler.add(
                    _sequence(str(number), 8, user=str(user), weight=weight, max_tokens=24)
                )
        for sequence, num_tokens in _run_step(scheduler):
            served[int(sequence.request.user)] += num_tokens
        for sequence in list(scheduler.running.values()):
            if sequence.num_output >= 24:
                scheduler.remove(sequence)
    shares = [tokens / weight for tokens, weight in zip(served, weights, strict=True)]
    jain = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
    assert jain > 0.95, (weights, served)


def test_a_pause_saves_nothing_up() -> None:
    share = FairShare()
    share.arrive("alice")
    share.charge("alice", 1000, 1.0)
    share.arrive("bob")
    assert share.of("bob") == share.of("alice")
    share.charge("bob", 10, 1.0)
    share.leave("alice")
    share.charge("bob", 5000, 1.0)
    share.arrive("alice")
    assert share.of("alice") == share.of("bob")


def test_waits_are_estimated_from_what_was_measured() -> None:
    scheduler = _scheduler(max_num_sequences=1)
    for name in "abc":
        scheduler.add(_sequence(name, 10, max_tokens=90))
    _run_step(scheduler)
    assert [q.wait_s for _, q in scheduler.changed_positions()] == [None, None]
    scheduler.estimates.learn_step(50, 1.0)
    waits = [wait_s for *_, wait_s in scheduler.waiting.waits(list(scheduler.running.values()))]
    assert waits[0] == pytest.approx((1 + 89) / 50, abs=0.1)
    assert waits[1] == pytest.approx(waits[0] + 100 / 50, abs=0.1)


def test_more_is_admitted_where_answers_end_early() -> None:
    """Nothing is reserved for tokens that few write, and a wrong guess costs a preemption, not more."""
    scheduler = _scheduler(max_num_sequences=16)
    for number in range(40):
        scheduler.add(_sequence(str(number), 8, user=str(number), max_tokens=200))
    _run_step(scheduler)
    assert 1 <= len(scheduler.running) <= 2, "two may fill the cache at first"
    most = 0
    for _ in range(3000):
        _run_step(scheduler)
        most = max(most, len(scheduler.running))
        for sequence in list(scheduler.running.values()):
            if sequence.num_output >= 30:
                scheduler.remove(sequence)
        if scheduler.is_idle:
            break
    assert scheduler.is_idle
    assert most >= 4


@pytest.mark.parametrize(("shares_prefixes", "planned"), [(True, ["a"]), (False, ["a", "b"])])
def test_a_sibling_waits_only_where_there_will_be_something_to_copy(
    shares_prefixes: bool, planned: list[str]
) -> None:
    scheduler = _scheduler(step_budget_tokens=200)
    scheduler.kv = Books(shares_prefixes=shares_prefixes)
    for name in "ab":
        scheduler.add(_sequence(name, 80, max_tokens=10))
    assert [sequence.id for sequence, _ in scheduler.plan()] == planned


@given(calm_s=st.floats(0.05, 2), token_s=st.floats(1e-4, 0.02))
def test_a_chunk_beside_writers_does_not_double_their_step(calm_s: float, token_s: float) -> None:
    """A machine whose step takes so long, and so much longer for each token that is read."""
    estimates = Estimates()
    assert estimates.chunk_tokens(1) is None, "nothing is known yet"
    for _ in range(30):
        estimates.learn_step(1, calm_s)
        num_read = estimates.chunk_tokens(1) or 256
        estimates.learn_step(1 + num_read, calm_s + num_read * token_s, num_read)
    chunk = estimates.chunk_tokens(1)
    assert chunk is not None
    assert chunk == LEAST_CHUNK_TOKENS or chunk * token_s <= calm_s
    assert chunk == LEAST_CHUNK_TOKENS or chunk * token_s >= 0.4 * calm_s - token_s, (
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
    assert estimates.chunk_tokens(1) == 46


def test_guessing_ahead_counts_for_the_rate_and_not_for_a_calm_step() -> None:
    estimates = Estimates()
    estimates.learn_step(3, 0.1, guessing_s=0.2)
    assert estimates.calm_step_s == 0.1
    assert estimates.tokens_per_s == pytest.approx(10)


def test_who_reads_alone_has_the_whole_budget() -> None:
    scheduler = _scheduler()
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 1.0, num_read=100)
    assert scheduler.estimates.chunk_tokens(1) == 5
    scheduler.add(_sequence("first", 20, max_tokens=50))
    assert [n for _, n in _run_step(scheduler)] == [20]
    scheduler.add(_sequence("second", 30, max_tokens=50))
    assert [n for _, n in _run_step(scheduler)] == [1, 5]


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
        (0.1, 0.001, 0.5, 50),
        (0.1, 0.001, 1.0, 50),
        (0.1, 0.001, 2.0, 100),
        (0.1, 0.001, 9.0, 200),  # two calm steps, as for an urgent one
        (0.02, 0.001, 2.0, 20),
        (0.02, 0.001, 11.0, 100),  # a tenth of a second
    ],
)
def test_where_more_wait_to_be_read_than_write_more_is_read(
    calm_s: float, token_s: float, crowd: float, num_tokens: int
) -> None:
    estimates = Estimates(calm_step_s=calm_s, reading_s=token_s)
    assert abs((estimates.chunk_tokens(1, crowd=crowd) or 0) - num_tokens) <= 1


def test_of_sixteen_that_come_together_the_first_are_not_done_before_the_last_is_read() -> None:
    """On a machine that reads a token in 3 ms beside steps of 25."""
    scheduler = _scheduler(
        Books(capacity_tokens=20_000), max_num_sequences=16, step_budget_tokens=256
    )
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.025, 0.003
    sequences = [_sequence(f"s{n}", 32, max_tokens=64, user=f"u{n}") for n in range(16)]
    for sequence in sequences:
        scheduler.add(sequence)
    num_steps = 0
    while not all(sequence.num_output for sequence in sequences):
        _run_step(scheduler)
        num_steps += 1
    assert num_steps < 60
    assert max(sequence.num_output for sequence in sequences) < 60


def test_who_finds_no_place_makes_nobody_wait() -> None:
    scheduler = _scheduler(
        Books(capacity_tokens=20_000), max_num_sequences=3, step_budget_tokens=256
    )
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.025, 0.0005
    for name in ("a", "b"):
        scheduler.add(_sequence(name, 4, max_tokens=500, user=name))
    _run_step(scheduler)
    scheduler.add(_sequence("long", 5000, user="c"))
    before = {s.id: n for s, n in _run_step(scheduler)}["long"]
    for number in range(16):
        scheduler.add(_sequence(f"w{number}", 30, user=f"u{number}"))
    assert {s.id: n for s, n in _run_step(scheduler)}["long"] <= before


@pytest.mark.parametrize("newcomer", ["background", "interactive"])
def test_a_long_prompt_does_not_hold_up_a_short_one(newcomer: Priority) -> None:
    """Beside a writer, where little is read in a step."""
    books = Books(capacity_tokens=20_000)
    scheduler = _scheduler(books, step_budget_tokens=256)
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 0.5, num_read=100)  # 10 tokens in 50 ms
    scheduler.add(_sequence("writer", 4))
    _run_step(scheduler)
    scheduler.add(_sequence("long", 5000))
    for _ in range(3):
        _run_step(scheduler)
    scheduler.add(short := _sequence("short", 20, newcomer))
    num_steps = 0
    while not short.num_output:
        _run_step(scheduler)
        num_steps += 1
    assert num_steps <= 5
    read = scheduler.running["long"].num_computed
    for _ in range(10):
        _run_step(scheduler)
    assert scheduler.running["long"].num_computed >= read + 9 * 8, "and it is read on itself"


def test_who_writes_is_measured_again_while_others_read() -> None:
    scheduler = _scheduler(Books(capacity_tokens=20_000), step_budget_tokens=256)
    scheduler.estimates.learn_step(1, 0.1)
    scheduler.estimates.learn_step(100, 0.5, num_read=100)
    scheduler.add(_sequence("writer", 4))
    _run_step(scheduler)
    scheduler.add(_sequence("long", 5000))
    calm = [len(_run_step(scheduler)) == 1 for _ in range(64)]
    assert sum(calm) == 2


def _crowd(num: int) -> Scheduler:
    """A user's many long prompts, half of them in places, being read."""
    scheduler = _scheduler(
        Books(capacity_tokens=100_000), max_num_sequences=num, step_budget_tokens=256
    )
    for number in range(2 * num):
        scheduler.add(_sequence(f"greedy {number}", 1000, user="greedy"))
    _run_step(scheduler)
    return scheduler


def test_a_users_only_prompt_is_not_read_in_the_crumbs_of_anothers() -> None:
    scheduler = _crowd(4)
    scheduler.add(modest := _sequence("modest", 250, user="modest"))
    assert [(s.id, n) for s, n in _run_step(scheduler)] == [("modest", 250)]
    assert modest.num_output == 1


def test_a_users_only_short_prompt_beside_writers_is_read_in_steps_of_its_own() -> None:
    """Else it would have half of steps that are short already, for those who write."""
    scheduler = _crowd(4)
    scheduler.estimates.learn_step(1, 0.02)
    scheduler.estimates.learn_step(100, 0.1, num_read=100)
    while not any(s.is_decoding for s in scheduler.running.values()):
        _run_step(scheduler)
    scheduler.add(_sequence("modest", 128, user="modest"))
    read = []
    while len(read) < 4:
        read.append({s.id: n for s, n in _run_step(scheduler) if not s.num_output})
    assert [plan.get("modest") for plan in read[:3]] == [40, 40, 40]
    assert all(set(plan) == {"modest"} for plan in read[:3])


def test_one_newcomer_after_the_other_does_not_stop_the_crowd() -> None:
    scheduler = _crowd(4)
    read = Counter[str]()
    for number in range(40):
        scheduler.add(_sequence(f"new {number}", 250, user=f"user {number}", max_tokens=1))
        for sequence, num_tokens in _run_step(scheduler):
            read[sequence.request.user == "greedy"] += num_tokens
            if sequence.num_output:
                scheduler.remove(sequence)
    assert read[True] >= 40 // 2 * 256 // 2 - 256, "in every other step they have half"


def test_a_long_only_prompt_shares_with_the_crowd() -> None:
    scheduler = _crowd(4)
    scheduler.add(_sequence("modest", 3000, user="modest"))
    plans = [{s.id: n for s, n in _run_step(scheduler)} for _ in range(6)]
    assert plans[0] == {"modest": 256}
    assert all(plan["modest"] == 128 and sum(plan.values()) == 256 for plan in plans[1:])


def test_steps_are_short_while_others_wait_to_be_read() -> None:
    scheduler = _scheduler(Books(capacity_tokens=100_000), step_budget_tokens=256)
    scheduler.estimates.learn_step(1000, 0.5, num_read=1000)
    scheduler.add(_sequence("first", 1000))
    assert [n for _, n in scheduler.plan()] == [256]
    scheduler.add(_sequence("second", 1000))
    assert sum(n for _, n in scheduler.plan()) == 100
    for _ in range(50):
        scheduler.estimates.learn_step(100, 10.0, num_read=100)
    assert sum(n for _, n in scheduler.plan()) == 64, "the weights are read for no fewer"


def test_a_lower_class_is_not_read_first() -> None:
    scheduler = _crowd(4)
    scheduler.add(modest := _sequence("modest", 250, "background", user="modest"))
    _run_step(scheduler)
    assert modest.num_computed < 250
