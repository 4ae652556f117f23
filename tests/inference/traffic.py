"""Traffic on a small loop: requests come, fork, are aborted and preempted, in any order and number.

`Traffic` keeps the books of what was asked and told, and compares it with what each request is told
that runs alone on an empty loop, without cached beginnings, neighbours and drafts.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from random import Random

from inference import block_pool
from inference.assembly import assemble
from inference.engine_loop import EngineLoop
from inference.hybrid_kv import HybridKV
from inference.hybrid_runner import make_runner
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.messages import (
    Failed,
    Finished,
    GenerateRequest,
    PromptLogprobs,
    Tokens,
    Update,
)
from inference.paged_kv import PagedKV
from inference.scheduler import Scheduler
from tests.inference.conftest import engine_config
from tests.inference.loops import ids, run, step

MAX_NUM_SEQUENCES = 3
MAX_STEPS = 5_000  # of a few hundred; more is a livelock


class Clock:
    """Steps that take any time: the scheduler measures them, and reads more or less in the next."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += self._random.choice((0.0, 0.001, 0.02, 0.3))
        return self._now_s


@dataclass(frozen=True, slots=True)
class LoopMaker:
    """Loops of any size over one model, which runs in double precision: where logits are close,
    float32 lets the batch's shape decide once in some ten thousand tokens."""

    whole: EngineLoop
    is_paged: bool = field(default=False, kw_only=True)

    @classmethod
    def load(cls, path: Path, *, is_paged: bool = False) -> "LoopMaker":
        whole, _ = assemble("tiny", path, engine_config(path), lambda *_: None)
        assert isinstance(whole, EngineLoop)
        whole.runner.model.double()
        return cls(whole, is_paged=is_paged)

    @property
    def max_context_tokens(self) -> int:
        return self.whole.kv.max_context_tokens

    def make_alone(self) -> EngineLoop:
        """With room for all that a single request can need."""
        return LoopMaker.make(self, 4 * self.max_context_tokens)

    def make(
        self, capacity_tokens: int, *, max_num_drafting: int = 0, max_waiting_tokens: int = 100_000
    ) -> EngineLoop:
        kv = self._make_kv(capacity_tokens)
        if isinstance(kv, HybridKV):
            max_num_drafting = 0
        scheduler = Scheduler(
            kv,
            max_num_sequences=MAX_NUM_SEQUENCES,
            step_budget_tokens=32,
            max_waiting_tokens=max_waiting_tokens,
            max_num_drafting=max_num_drafting,
        )
        scheduler.num_layers = self.whole.scheduler.num_layers if isinstance(kv, SlabKV) else 0
        return EngineLoop(
            make_runner(self.whole.runner.model, kv),
            kv,
            scheduler,
            self.whole.tokenizer,
            self.whole.grammars,
            eos_ids=self.whole.eos_ids,
            vocab_size=self.whole.vocab_size,
        )

    def _make_kv(self, capacity_tokens: int) -> KVCache:
        if isinstance(self.whole.kv, HybridKV):
            return HybridKV(capacity_tokens, self.max_context_tokens, MAX_NUM_SEQUENCES)
        if self.is_paged:
            return PagedKV(capacity_tokens // block_pool.BLOCK_TOKENS, self.max_context_tokens)
        return SlabKV(capacity_tokens, self.max_context_tokens)


class Traffic:
    """A loop with little room, those who asked it, and what they were told so far.

    `seen` counts what has happened, so that a test can tell that it has.
    """

    def __init__(self, maker: LoopMaker, *, capacity_tokens: int, max_waiting_tokens: int) -> None:
        self.maker = maker
        self.loop = maker.make(
            capacity_tokens, max_num_drafting=2, max_waiting_tokens=max_waiting_tokens
        )
        self.asked: dict[str, GenerateRequest] = {}
        self.told: dict[str, list[Update]] = {}
        self.ended: list[str] = []  # in this order
        self.seen: Counter[str] = Counter()
        self._aborted: set[str] = set()

    def expect_answers_of(self, num_tokens: float) -> None:
        """As after many of this length: where they were short, more is admitted than finds room."""
        self.loop.scheduler.estimates.output_tokens = num_tokens

    # --- what happens -------------------------------------------------------------------------

    def ask(self, request: GenerateRequest) -> None:
        """The request gets an id of its own."""
        name = str(len(self.asked))
        self.asked[name] = request = replace(request, request_id=name)
        self.told[name] = []
        self.loop.submit(request)

    def abort(self, name: str) -> None:
        self._aborted.add(name)
        self.loop.abort(name)

    def step(self) -> None:
        running = set(self.loop.scheduler.running)
        on_its_way = self._on_its_way()
        step(self.loop, self.told)
        self.seen["layered"] += len(on_its_way)
        assert len(self._on_its_way()) <= 1
        waiting = {sequence.id for sequence in self.loop.scheduler.waiting.sequences}
        self.seen["preempted"] += len(running & waiting)
        assert len(self.loop.scheduler.running) <= MAX_NUM_SEQUENCES
        assert set(self.told) == set(self.asked), "told to nobody"
        for name, updates in self.told.items():
            assert not any(isinstance(update, Finished | Failed) for update in updates[:-1])
            if updates and isinstance(updates[-1], Finished) and name not in self.ended:
                self.ended.append(name)

    def _on_its_way(self) -> list[str]:
        """Whose chunk is between two layers."""
        running = self.loop.scheduler.running.values()
        return [sequence.id for sequence in running if sequence.chunk]

    def run_to_the_end(self) -> None:
        for _ in range(MAX_STEPS):
            if self.loop.is_idle:
                return
            self.step()
        raise AssertionError("it goes on and on")

    def output_of(self, name: str) -> tuple[int, ...]:
        """All that is known of an answer, also of what came before it was taken up."""
        return (*self.asked[name].output_ids, *ids(self.told[name]))

    # --- what is right ------------------------------------------------------------------------

    def check_books(self) -> None:
        """Everything has ended: every token of the cache is free or cached, and can be had."""
        kv = self.loop.kv
        self.loop.check()
        assert kv.used_tokens == 0
        assert not self.loop._answers
        assert kv.reserve("all", kv.capacity_tokens), "free and cached are all there is"
        assert kv.cached_tokens == 0
        kv.release("all")
        kv.check()
        assert kv.used_tokens == 0

    def check_answers(self) -> None:
        """Each request has one end, and was told what it is told alone, or a beginning of that."""
        for name, updates in self.told.items():
            end = updates[-1]
            if isinstance(end, Failed):
                assert end.code == "overloaded", end
                assert not self.asked[name].is_replay
                assert len(updates) == 1
                self.seen["refused"] += 1
                continue
            assert isinstance(end, Finished), f"{name} has no end"
            self._check_answer(name, updates, end)
        self.seen["accepted"] = self.loop.scheduler.num_accepted

    def _check_answer(self, name: str, updates: list[Update], end: Finished) -> None:
        alone = self._alone(name)
        expected = alone[-1]
        assert isinstance(expected, Finished)
        assert end.usage.completion_tokens == len(self.output_of(name))
        self.seen["cached"] += end.usage.cached_tokens > 0
        pairs = list(zip(logprobs(updates), logprobs(alone), strict=False))
        assert all(isclose(found, right, abs_tol=1e-4) for found, right in pairs), self.asked[name]
        if end.reason == "abort":
            assert name in self._aborted
            self.seen["aborted"] += bool(ids(updates))
            assert ids(updates) == ids(alone)[: len(ids(updates))], self.asked[name]
            assert rated(updates) == rated(alone)[: len(rated(updates))]
            return
        assert ids(updates) == ids(alone), self.asked[name]
        assert text(updates) == text(alone)
        assert rated(updates) == rated(alone)
        assert (end.reason, end.stop) == (expected.reason, expected.stop)
        assert end.usage.prompt_tokens == expected.usage.prompt_tokens

    def _alone(self, name: str) -> list[Update]:
        return run(self.maker.make_alone(), self.asked[name])[name]


def text(updates: list[Update]) -> str:
    return "".join(update.text for update in updates if isinstance(update, Tokens))


def logprobs(updates: list[Update]) -> list[float]:
    """How likely the prompt's tokens and those of the answer were, as far as that was asked."""
    return [
        token.logprob
        for kind in (PromptLogprobs, Tokens)
        for update in updates
        if isinstance(update, kind)
        for token in update.logprobs
    ]


def rated(updates: list[Update]) -> list[tuple[int, int]]:
    """The places of the prompt's tokens that were rated, and the tokens."""
    return [
        (update.start + number, token.token_id)
        for update in updates
        if isinstance(update, PromptLogprobs)
        for number, token in enumerate(update.logprobs)
    ]
