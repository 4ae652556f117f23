"""What tests of the scheduler plan with: sequences, and a cache that only counts."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from inference import GenerateRequest, Priority, SamplingParams
from inference.scheduler import Scheduler
from inference.sequence import Sequence

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


def a_sequence(
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


def a_scheduler(books: Books | None = None, **changes: int) -> Scheduler:
    limits = {
        "max_num_sequences": 4,
        "step_budget_tokens": BUDGET,
        "max_waiting_tokens": 100_000,
    }
    return Scheduler(books or Books(), **{**limits, **changes})


def run_step(scheduler: Scheduler) -> list[tuple[Sequence, int]]:
    """The next step: planned, and run."""
    plan = scheduler.plan()
    run_plan(plan)
    return plan


def run_plan(plan: Iterable[tuple[Sequence, int]]) -> None:
    """What the engine does with a plan: compute it, and draw a token where a sequence is due."""
    for sequence, num_tokens in plan:
        if sequence.chunk:
            sequence.chunk.take(None)
            if not sequence.chunk.is_through:
                continue
            sequence.chunk = None
        sequence.num_computed += num_tokens
        if sequence.num_pending == 0:
            sequence.append(7, 0.0)
