"""Who computes how many tokens in the next step.

One token budget per step: sequences that decode come first with one token each, then waiting
prompts are read in chunks with what is left, so that a long prompt never stalls the streams.
Knows integers only: no tensors, no text. Source of the rule: vLLM V1's scheduler ("there is no
prefill phase or decode phase"), Sarathi-Serve (Agrawal et al. 2024) for the chunks.
"""

from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Sequence as TokenIds
from time import monotonic
from typing import Protocol

from inference.messages import Priority, Queued
from inference.sequence import Sequence

Tokens = TokenIds[int]
_LEAST_SHARED_TOKENS = 64  # below, a sibling's prefill is not worth a wait

_RANK: dict[Priority, int] = {"interactive": 0, "api": 1, "background": 2}


class KVBooks(Protocol):
    """What the scheduler needs to know of a KV cache."""

    capacity_tokens: int

    def reserve(self, sequence_id: str, num_tokens: int) -> bool: ...
    def attach(self, sequence_id: str, token_ids: Tokens, salt: str) -> int: ...
    def release(self, sequence_id: str, token_ids: Tokens = (), salt: str = "") -> None: ...


class Scheduler:
    """The waiting queue and the running batch."""

    def __init__(
        self, kv: KVBooks, *, max_num_sequences: int, step_budget_tokens: int, max_waiting: int
    ) -> None:
        self.kv = kv
        self.max_num_sequences = max_num_sequences
        self.step_budget_tokens = step_budget_tokens
        self.max_waiting = max_waiting
        self.waiting: list[Sequence] = []
        self.running: OrderedDict[str, Sequence] = OrderedDict()
        self._mean_service_s: float | None = None

    # --- coming and going ---------------------------------------------------------------------

    def add(self, sequence: Sequence) -> bool:
        """Queue a sequence behind its class. False: the queue is full, nothing changed."""
        if len(self.waiting) >= self.max_waiting:
            return False
        rank = _RANK[sequence.request.priority]
        index = len(self.waiting)
        while index and _RANK[self.waiting[index - 1].request.priority] > rank:
            index -= 1
        self.waiting.insert(index, sequence)
        return True

    def find(self, sequence_id: str) -> Sequence | None:
        if sequence_id in self.running:
            return self.running[sequence_id]
        return next((s for s in self.waiting if s.id == sequence_id), None)

    def remove(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        """Forget a sequence that has ended, wherever it is; what it has computed may be used again."""
        if self.running.pop(sequence.id, None) is None:
            self.waiting.remove(sequence)
        elif sequence.admitted_s is not None:
            self._learn_service_time(monotonic() - sequence.admitted_s)
        self._release(sequence, is_reusable=is_reusable)

    def _release(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        computed = sequence.token_ids[: sequence.num_computed] if is_reusable else ()
        self.kv.release(sequence.id, computed, sequence.request.cache_salt)

    @property
    def is_idle(self) -> bool:
        return not self.running and not self.waiting

    # --- the step -----------------------------------------------------------------------------

    def plan(self) -> list[tuple[Sequence, int]]:
        """The next step as (sequence, number of tokens); empty when there is nothing to do."""
        budget = self.step_budget_tokens
        plan: list[tuple[Sequence, int]] = []
        decoding = [s for s in self.running.values() if s.is_decoding]
        for sequence in decoding:
            # A preemption for an earlier one may have taken this one out of the batch.
            if budget and sequence.id in self.running and self._make_room(sequence, keep=plan):
                plan.append((sequence, 1))
                budget -= 1
        budget = self._continue_prefills(plan, budget)
        self._admit(plan, budget)
        return plan

    def _continue_prefills(self, plan: list[tuple[Sequence, int]], budget: int) -> int:
        for sequence in self.running.values():
            if budget and not sequence.is_decoding:
                num_tokens = min(budget, sequence.num_pending)
                plan.append((sequence, num_tokens))
                budget -= num_tokens
        return budget

    def _admit(self, plan: list[tuple[Sequence, int]], budget: int) -> None:
        for sequence in list(self.waiting):
            if not budget or len(self.running) >= self.max_num_sequences:
                return
            if self._has_sibling_in_prefill(sequence):
                continue  # a moment later most of its prompt is there to be copied
            if not self._take_in(sequence):
                return  # first come, first served: nobody overtakes the one that does not fit
            num_tokens = min(budget, sequence.num_pending)
            plan.append((sequence, num_tokens))
            budget -= num_tokens

    def _take_in(self, sequence: Sequence) -> bool:
        """Make a waiting sequence a running one, behind what is cached of it. False: no room."""
        num_cached = 0
        if sequence.request.params.num_prompt_logprobs is None:  # those need the prompt's logits
            salt = sequence.request.cache_salt
            num_cached = self.kv.attach(sequence.id, sequence.token_ids, salt)
        sequence.num_computed = num_cached
        if not self.kv.reserve(sequence.id, len(sequence.token_ids) + 1):
            self._release(sequence)
            sequence.num_computed = 0
            return False
        self.waiting.remove(sequence)
        self.running[sequence.id] = sequence
        if sequence.admitted_s is None:
            sequence.num_cached = num_cached
            sequence.admitted_s = monotonic()
        return True

    def _has_sibling_in_prefill(self, sequence: Sequence) -> bool:
        """Whether a running sequence is just computing at least half of this one's prompt."""
        request = sequence.request
        num_shared = max(_LEAST_SHARED_TOKENS, len(request.prompt_ids) // 2)
        beginning = request.prompt_ids[:num_shared]
        if len(beginning) < num_shared or request.params.num_prompt_logprobs is not None:
            return False
        return any(
            other.num_computed < num_shared
            and other.request.cache_salt == request.cache_salt
            and other.request.prompt_ids[:num_shared] == beginning
            for other in self.running.values()
        )

    def _make_room(self, sequence: Sequence, keep: list[tuple[Sequence, int]]) -> bool:
        """Reserve KV for one more token; preempts the newest sequences if there is none."""
        planned = {s.id for s, _ in keep}
        while not self.kv.reserve(sequence.id, len(sequence.token_ids) + 1):
            victim = next((s for s in reversed(self.running.values()) if s.id not in planned), None)
            if victim is None:
                return False
            self._preempt(victim)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence) -> None:
        """Take a sequence out of the batch; its tokens are computed again later.

        Recomputing beats swapping for the sizes at hand (engines.md: swap was .91 of recompute).
        """
        del self.running[victim.id]
        self._release(
            victim
        )  # a cached beginning makes its return cheap, unless others need the room
        victim.forget_computed()
        self.waiting.insert(0, victim)

    # --- honest estimates ---------------------------------------------------------------------

    def changed_positions(self) -> Iterable[tuple[str, Queued]]:
        """A `Queued` for every waiting sequence whose position is not the one last reported."""
        for position, sequence in enumerate(self.waiting, start=1):
            if sequence.reported_position != position:
                sequence.reported_position = position
                yield sequence.id, Queued(position, self._estimated_wait_s(position))

    def _estimated_wait_s(self, position: int) -> float | None:
        if self._mean_service_s is None:
            return None
        return self._mean_service_s * position / self.max_num_sequences

    def _learn_service_time(self, service_s: float) -> None:
        mean_s = self._mean_service_s
        self._mean_service_s = service_s if mean_s is None else 0.8 * mean_s + 0.2 * service_s
