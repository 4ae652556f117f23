"""Invariants of the plan, on integers, for any traffic."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.fair_share import FairShare
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from inference.waiting import WaitingQueue
from tests.inference.planning import BUDGET, Books, a_scheduler, a_sequence, run_step


@given(
    prompts=st.lists(st.integers(1, 120), min_size=1, max_size=12),
    lengths=st.lists(st.integers(1, 60), min_size=12, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_everybody_ends_and_no_step_exceeds_its_limits(
    prompts: list[int], lengths: list[int]
) -> None:
    scheduler = a_scheduler()
    sequences = [a_sequence(str(i), n) for i, n in enumerate(prompts)]
    for sequence in sequences:
        assert scheduler.add(sequence)
    for _ in range(5000):
        plan = run_step(scheduler)
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
    scheduler = a_scheduler()
    stream, long = a_sequence("stream", 4, max_tokens=60), a_sequence("long", 200, max_tokens=9)
    scheduler.add(stream)
    run_step(scheduler)
    scheduler.add(long)
    while long.num_computed < 200:
        plan = run_step(scheduler)
        assert (stream, 1) in plan
        assert {s.id: n for s, n in plan}.get("long", 0) <= BUDGET - 1


def test_classes_go_first_and_keep_their_order_within() -> None:
    scheduler = a_scheduler()
    for name, priority in [("b1", "background"), ("a1", "api"), ("i1", "interactive")]:
        scheduler.add(a_sequence(name, 3, priority))  # type: ignore[arg-type]
    scheduler.add(a_sequence("i2", 3))
    scheduler.waiting.sort([])
    assert [s.id for s in scheduler.waiting.sequences] == ["i1", "i2", "a1", "b1"]


def test_the_queue_is_sorted_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody gives way, a lone user is read first, and positions are reported."""
    scheduler = a_scheduler(max_num_sequences=2)
    sort, sorts = WaitingQueue.sort, []
    monkeypatch.setattr(WaitingQueue, "sort", lambda *args: sorts.append(sort(*args)))
    for number in range(6):
        scheduler.add(a_sequence(f"many{number}", 3, user="many", max_tokens=5))
    run_step(scheduler)
    scheduler.add(a_sequence("lone", 3, user="lone", max_tokens=5))
    run_step(scheduler)
    assert "lone" in scheduler.running, "it was given a place"
    assert len(list(scheduler.changed_positions())) == 5
    assert len(sorts) == 2


def test_positions_are_reported_once_and_again_when_they_change() -> None:
    scheduler = a_scheduler(max_num_sequences=1)
    for name in "abc":
        scheduler.add(a_sequence(name, 3))
    run_step(scheduler)
    assert [(i, q.position) for i, q in scheduler.changed_positions()] == [("b", 1), ("c", 2)]
    assert list(scheduler.changed_positions()) == []
    scheduler.remove(scheduler.running["a"])
    run_step(scheduler)
    assert [(i, q.position) for i, q in scheduler.changed_positions()] == [("c", 1)]


def test_a_full_queue_refuses_and_forgets() -> None:
    # Three tokens of prompt and the first guess of an answer's length, twice.
    scheduler = a_scheduler(max_waiting_tokens=2 * (3 + 256))
    assert [scheduler.add(a_sequence(n, 3)) for n in "abc"] == [True, True, False]
    assert scheduler.find("c") is None


def test_a_full_queue_takes_in_whom_another_worker_had_accepted() -> None:
    scheduler = a_scheduler(max_waiting_tokens=2 * (3 + 256), max_num_sequences=1)
    assert [scheduler.add(a_sequence(n, 3)) for n in "ab"] == [True, True]
    request = a_sequence("replay", 3, user="another").request
    assert not scheduler.add(Sequence(replace(request, output_ids=(5, 6)))), "a branch of an answer"
    assert scheduler.add(Sequence(replace(request, is_replay=True)))
    assert not scheduler.add(a_sequence("c", 3))
    assert [sequence.id for sequence, _ in run_step(scheduler)] == ["replay"]


def test_a_queue_full_of_chores_takes_people_in() -> None:
    scheduler = a_scheduler(max_waiting_tokens=2 * (3 + 256))
    assert [scheduler.add(a_sequence(n, 3, "background")) for n in "abc"] == [True, True, False]
    assert [scheduler.add(a_sequence(n, 3)) for n in "def"] == [True, True, False]
    assert not scheduler.add(a_sequence("g", 3, "background"))


def test_the_newest_is_preempted_and_computed_again() -> None:
    scheduler = a_scheduler()
    old, new = a_sequence("old", 140), a_sequence("new", 140)
    scheduler.add(old)
    scheduler.add(new)
    while not any(s.id == "new" for s in scheduler.waiting.sequences) or old.num_output < 10:
        run_step(scheduler)
        if old.num_output > 200:
            raise AssertionError("nobody was preempted")
    assert old.id in scheduler.running
    assert new.num_computed == 0
    scheduler.remove(old)
    before = new.num_output
    while new.num_output == before:
        run_step(scheduler)
    assert new.num_to_prefill == 140 + before


def _run_until_ended(scheduler: Scheduler, num_output: int) -> dict[str, int]:
    """The step in which each sequence drew its first token; each ends after `num_output`."""
    first: dict[str, int] = {}
    for step in range(20_000):
        run_step(scheduler)
        for sequence in list(scheduler.running.values()):
            if sequence.num_output:
                first.setdefault(sequence.id, step)
            if sequence.num_output >= num_output:
                scheduler.remove(sequence)
        if scheduler.is_idle:
            return first
    raise AssertionError("not all ended")


def test_one_request_beside_a_users_many_waits_for_one_step_only() -> None:
    scheduler = a_scheduler()
    scheduler.kv.capacity_tokens = 10_000
    for number in range(32):
        scheduler.add(a_sequence(f"many{number}", 20, user="alice", max_tokens=100))
    for _ in range(10):
        run_step(scheduler)
    scheduler.add(a_sequence("single", 20, user="bob", max_tokens=100))
    plan = run_step(scheduler)
    assert "single" in {sequence.id for sequence, _ in plan}
    first = _run_until_ended(scheduler, 100)
    assert first["single"] <= 2, "also where the others hold all places"
    assert len(first) == 33


def test_a_higher_class_gets_a_place_at_once() -> None:
    scheduler = a_scheduler(max_num_sequences=2)
    for name in ("b1", "b2"):
        scheduler.add(a_sequence(name, 10, "background", user="indexer", max_tokens=20))
    run_step(scheduler)
    scheduler.add(a_sequence("i", 10, user="indexer", max_tokens=20))
    assert "i" in {sequence.id for sequence, _ in run_step(scheduler)}
    assert "b1" in scheduler.running, "the newest of them gave way"
    _run_until_ended(scheduler, 20)


def test_a_higher_class_gets_memory_at_once() -> None:
    """Of chores that fill the cache, as many go as it takes, and no more."""
    scheduler = a_scheduler()
    chores = [a_sequence(f"b{n}", 60, "background", "indexer", max_tokens=30) for n in range(3)]
    for chore in chores:
        scheduler.add(chore)
    while not all(chore.is_decoding for chore in chores):
        run_step(scheduler)
    scheduler.add(a_sequence("i", 60, user="alice", max_tokens=20))
    assert "i" in {sequence.id for sequence, _ in run_step(scheduler)}
    assert list(scheduler.running) == ["b0", "b1", "i"]
    _run_until_ended(scheduler, 20)


def test_chores_stay_where_their_memory_would_not_be_enough() -> None:
    scheduler = a_scheduler()
    scheduler.add(a_sequence("i1", 150, user="alice", max_tokens=20))
    scheduler.add(a_sequence("b", 60, "background", "indexer", max_tokens=20))
    while sum(s.is_decoding for s in scheduler.running.values()) < 2:
        run_step(scheduler)
    scheduler.add(a_sequence("i2", 150, user="bob", max_tokens=20))
    run_step(scheduler)
    assert list(scheduler.running) == ["i1", "b"]
    _run_until_ended(scheduler, 20)


@given(weights=st.lists(st.sampled_from((1.0, 2.0, 4.0)), min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_who_asks_for_all_gets_a_share_by_weight(weights: list[float]) -> None:
    """Everybody always has requests waiting: what they get is as their weights (Jain's index)."""
    scheduler = a_scheduler(max_num_sequences=8)
    scheduler.kv.capacity_tokens = 100_000
    served = [0] * len(weights)
    number = 0
    for _ in range(6_000):
        for user, weight in enumerate(weights):
            while sum(s.request.user == str(user) for s in scheduler.waiting.sequences) < 3:
                number += 1
                scheduler.add(
                    a_sequence(str(number), 8, user=str(user), weight=weight, max_tokens=24)
                )
        for sequence, num_tokens in run_step(scheduler):
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


def test_who_has_left_is_forgotten_once_others_have_had_more() -> None:
    """While somebody is there all the time, and people come by the thousand."""
    share = FairShare()
    share.arrive("always")
    for number in range(10_000):
        share.arrive(str(number))
        share.charge(str(number), 1_000, 1.0)
        share.charge("always", 100, 1.0)
        share.leave(str(number))
    assert len(share._counters) < 200


events = st.tuples(
    st.sampled_from("abcde"), st.sampled_from(("comes", "goes", "gets")), st.integers(1, 9)
)


@given(events=st.lists(events))
@settings(max_examples=300, deadline=None)
def test_nobody_has_other_turns_for_what_is_forgotten(events: list[tuple[str, str, int]]) -> None:
    share, hoarding = FairShare(), FairShare()
    present: Counter[str] = Counter()
    for user, what, cost in events:
        if what != "comes" and not present[user]:
            continue
        share._most_kept = 0  # forgets whenever somebody leaves
        for each in (share, hoarding):
            match what:
                case "comes":
                    each.arrive(user)
                case "goes":
                    each.leave(user)
                case "gets":
                    each.charge(user, cost, 1.0)
        present[user] += {"comes": 1, "goes": -1, "gets": 0}[what]
        assert all(share.of(u) == hoarding.of(u) for u, number in present.items() if number)


def test_waits_are_estimated_from_what_was_measured() -> None:
    scheduler = a_scheduler(max_num_sequences=1)
    for name in "abc":
        scheduler.add(a_sequence(name, 10, max_tokens=90))
    run_step(scheduler)
    assert [q.wait_s for _, q in scheduler.changed_positions()] == [None, None]
    scheduler.estimates.learn_step(50, 1.0)
    waits = [wait_s for *_, wait_s in scheduler.waiting.waits(list(scheduler.running.values()))]
    assert waits[0] == pytest.approx((1 + 89) / 50, abs=0.1)
    assert waits[1] == pytest.approx(waits[0] + 100 / 50, abs=0.1)


def test_a_wait_is_told_again_where_it_has_become_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a third and a second at least, and once a second at most."""
    now_s = 100.0
    monkeypatch.setattr("inference.scheduler.monotonic", lambda: now_s)
    scheduler = a_scheduler(max_num_sequences=1)
    for name in "ab":
        scheduler.add(a_sequence(name, 10, max_tokens=90))
    run_step(scheduler)
    assert [q.wait_s for _, q in scheduler.changed_positions()] == [None]
    left = 1 + 89
    told = []
    for rate, now_s in (
        *((9.0, 100.9), (9.0, 101.0)),  # nothing was known
        *((7.0, 101.5), (7.0, 105.0)),  # 12.9 s are less than a third more than 10
        *((4.5, 105.1), (1.0, 106.0), (1.0, 106.2)),
        *((45.0, 107.2), (90.0, 109.0)),  # from 2 s to 1
        *((400.0, 200.0),),
    ):
        scheduler.estimates.tokens_per_s = rate
        told += [(now_s, q.wait_s) for _, q in scheduler.changed_positions()]
    assert told == [
        (at_s, pytest.approx(left / rate, abs=0.2))
        for at_s, rate in ((101.0, 9.0), (105.1, 4.5), (106.2, 1.0), (107.2, 45.0), (109.0, 90.0))
    ]


def test_more_is_admitted_where_answers_end_early() -> None:
    """Nothing is reserved for tokens that few write, and a wrong guess costs a preemption, not more."""
    scheduler = a_scheduler(max_num_sequences=16)
    for number in range(40):
        scheduler.add(a_sequence(str(number), 8, user=str(number), max_tokens=200))
    run_step(scheduler)
    assert 1 <= len(scheduler.running) <= 2, "two may fill the cache at first"
    most = 0
    for _ in range(3000):
        run_step(scheduler)
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
    scheduler = a_scheduler(step_budget_tokens=200)
    scheduler.kv = Books(shares_prefixes=shares_prefixes)
    for name in "ab":
        scheduler.add(a_sequence(name, 80, max_tokens=10))
    assert [sequence.id for sequence, _ in scheduler.plan()] == planned


def test_who_waits_for_a_look_stops_no_guesses() -> None:
    scheduler = a_scheduler(max_num_drafting=1)
    writer = a_sequence("writer", 4, max_tokens=20)
    looking = a_sequence("looking", 40, max_tokens=20)
    scheduler.add(writer)
    run_step(scheduler)
    scheduler.add(looking)
    scheduler.plan()
    assert not scheduler.may_guess  # beside a prompt that is read
    looking.is_looking = True
    assert [s for s, _ in scheduler.plan()] == [writer]
    assert scheduler.may_guess
