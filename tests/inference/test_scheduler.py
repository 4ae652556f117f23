"""Invariants of the plan, on integers, for any traffic."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from inference import GenerateRequest, Priority, SamplingParams
from inference.scheduler import Scheduler
from inference.sequence import Sequence

BUDGET = 32
CAPACITY = 300


@dataclass
class Books:
    """A KV cache that only counts."""

    capacity_tokens: int = CAPACITY
    reserved: dict[str, int] = field(default_factory=dict)

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


def _sequence(name: str, num_prompt: int, priority: Priority = "interactive") -> Sequence:
    params = SamplingParams(max_tokens=1000)
    return Sequence(GenerateRequest(name, "m", (1,) * num_prompt, params, priority=priority))


def _scheduler(**changes: int) -> Scheduler:
    limits = {"max_num_sequences": 4, "step_budget_tokens": BUDGET, "max_waiting": 100, **changes}
    return Scheduler(Books(), **limits)


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
    stream, long = _sequence("stream", 4), _sequence("long", 200)
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
    assert [s.id for s in scheduler.waiting] == ["i1", "i2", "a1", "b1"]


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
    scheduler = _scheduler(max_waiting=2)
    assert [scheduler.add(_sequence(n, 3)) for n in "abc"] == [True, True, False]
    assert scheduler.find("c") is None


def test_the_newest_is_preempted_and_computed_again() -> None:
    scheduler = _scheduler()
    old, new = _sequence("old", 140), _sequence("new", 140)
    scheduler.add(old)
    scheduler.add(new)
    while not any(s.id == "new" for s in scheduler.waiting) or old.num_output < 10:
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
