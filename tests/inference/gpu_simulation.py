"""Requests on a machine whose steps take what a GPU's took: who waits how long for what."""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from inference import GenerateRequest, SamplingParams
from inference.gathering import MOST_ON_GPU_S, Gathering
from inference.messages import StepFrame, Tokens
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from tests.inference.planning import a_sequence, run_plan

GATHER_S = 0.03  # as configured
_MOST_S = 60.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Seconds of a step: that only decodes, or reads something, and what each token adds to that. All
    vary by a third. The first step takes `first_s`, and of others a share a fifth of a second longer."""

    calm_s: float = 0.0018  # an H200, 32 sequences of the shape of Qwen3-0.6B
    fixed_s: float = 0.02
    token_s: float = 5e-6
    first_s: float | None = None
    disturbed: float = 0.0

    def took_s(self, num_read: int, num_tokens: int, rng: random.Random) -> float:
        took_s = self.fixed_s + self.token_s * num_tokens if num_read else self.calm_s
        late_s = 0.2 if rng.random() < self.disturbed else 0.0
        return took_s * rng.uniform(0.8, 1.4) + late_s


@dataclass(slots=True)
class Waits:
    """In seconds: to first tokens of prompts; when who writes is seen to have written; and of steps
    beside those that read something."""

    first_s: dict[str, float] = field(default_factory=dict)
    seen_s: dict[str, list[float]] = field(default_factory=dict)
    steps_s: list[float] = field(default_factory=list)
    num_prompts: int = 0

    @property
    def median_first_s(self) -> float:
        missing = [_MOST_S] * (self.num_prompts - len(self.first_s))
        return median([*self.first_s.values(), *missing])

    @property
    def gap_p99_s(self) -> float:
        gaps = [b - a for seen in self.seen_s.values() for a, b in pairwise(seen)]
        return sorted(gaps)[int(0.99 * len(gaps))]

    @property
    def steps_of_each(self) -> float:
        return len(self.steps_s) / self.num_prompts

    @property
    def long_step_s(self) -> float:
        """The 95th percentile."""
        return sorted(self.steps_s)[int(0.95 * len(self.steps_s))]


def beside_writers(
    scheduler: Scheduler, machine: Machine, *, num_writers: int = 32, seed: int = 1
) -> Waits:
    """Some write, and four prompts of 2,000 tokens come in a second."""
    rng = random.Random(seed)
    if machine.first_s is not None:
        scheduler.estimates.learn_step(3, machine.first_s, 3)  # a worker's canary
    for number in range(num_writers):
        scheduler.add(a_sequence(f"writer {number}", 100, max_tokens=10**6))
    came_s = [1.0 + 0.25 * number for number in range(20)]
    waits, readers = Waits(num_prompts=len(came_s)), _Readers()
    now_s, num_sent = 0.0, 0
    while len(waits.first_s) < len(came_s) and now_s < _MOST_S:
        while num_sent < len(came_s) and came_s[num_sent] <= now_s:
            params = SamplingParams(max_tokens=20)
            prompt = (num_sent,) * 2000
            scheduler.add(Sequence(GenerateRequest(str(num_sent), "m", prompt, params)))
            num_sent += 1
        plan = scheduler.plan()
        num_read = sum(num for sequence, num in plan if not sequence.is_decoding)
        num_tokens = sum(num for _, num in plan)
        took_s = machine.took_s(num_read, num_tokens, rng)
        before = {sequence.id: sequence.num_output for sequence, _ in plan}
        run_plan(plan)
        now_s += took_s
        readers.hear([s for s, _ in plan if s.num_output > before[s.id]], now_s)
        waits.steps_s += [took_s] if num_read and num_sent else []
        scheduler.estimates.learn_step(num_tokens, took_s, num_read)
        for sequence, _ in plan:
            if sequence.id.isdigit() and sequence.num_output:
                waits.first_s.setdefault(sequence.id, now_s - came_s[int(sequence.id)])
            if sequence.num_output >= sequence.request.params.max_tokens:
                scheduler.remove(sequence)
    waits.seen_s = {name: seen for name, seen in readers.seen_s.items() if not name.isdigit()}
    return waits


class _Readers:
    """See tokens when a worker's thread sends them."""

    def __init__(self) -> None:
        self.seen_s: dict[str, list[float]] = {}
        self._gathering = Gathering(GATHER_S)
        self._gathering.most_s = MOST_ON_GPU_S

    def hear(self, drawn: list[Sequence], now_s: float) -> None:
        self._take_what_is_due(now_s)
        updates = ((s.id, Tokens("x", (7,), s.num_output)) for s in drawn)
        self._gathering.add(StepFrame(tuple(updates)))
        if self._gathering.due_s is not None and self._gathering.due_s <= now_s:
            self._take(now_s)

    def _take_what_is_due(self, now_s: float) -> None:
        due_s = self._gathering.due_s
        if due_s is not None and due_s <= now_s:
            self._take(due_s)

    def _take(self, at_s: float) -> None:
        for name, update in self._gathering.take(at_s).updates:
            assert isinstance(update, Tokens)
            self.seen_s.setdefault(name, []).extend([at_s] * len(update.ids))
