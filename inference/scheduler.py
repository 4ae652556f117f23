"""Who computes how many tokens in the next step.

One token budget per step: sequences that decode come first with one token each, then waiting
prompts are read in chunks with what is left, so that a long prompt never stalls the streams.
Knows integers only: no tensors, no text. Source of the rule: vLLM V1's scheduler ("there is no
decoding phase nor prefill phase"), and Sarathi-Serve (Agrawal et al. 2024) for the chunks; the
admission by expected length is SGLang's.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from time import monotonic

from inference.fair_share import OUTPUT_COST, FairShare
from inference.kv import KVBooks
from inference.layered_plan import layered
from inference.messages import Queued
from inference.ngrams import MOST_DRAFTED
from inference.prefix_index import count_common
from inference.priority import RANK
from inference.relief import Relief
from inference.sequence import Sequence
from inference.speculation import GrammarOf, Guesser, Place, Speculation
from inference.waiting import LEAST_CHUNK_TOKENS, Estimates, Told, WaitingQueue

Plan = list[tuple[Sequence, int]]
_CALM_EVERY, _CALM_EVERY_AT_FIRST = 32, 2
_LEAST_CHUNK_WITH_STATES = 64  # a hybrid reads all its weights again for every prompt of a step
_READ_AGAIN_SHARE = 4  # of a step's budget: an answer's tokens are attended to one by one
_LEAST_SHARED_TOKENS = 64  # below, a sibling's prefill is not worth a wait
_ALONE_STEPS = (
    3  # of such as others wait for: so long a beginning of a user's only prompt is read alone
)
_EXPECTED_AT_FIRST = 0.7  # of the tokens that an answer may have, as in SGLang
_EXPECTED_AT_LEAST = 0.1
_EXPECTED_STEPS = 600  # from the one to the other, while nobody has to be preempted


class Scheduler:
    """The waiting queue and the running batch."""

    def __init__(
        self,
        kv: KVBooks,
        *,
        max_num_sequences: int,
        step_budget_tokens: int,
        max_waiting_tokens: int,
        max_num_drafting: int = 0,
        draft_model: Guesser | None = None,
        is_launched: bool = False,
    ) -> None:
        """`is_launched`: by a GPU, whose steps that read cost something however little they read."""
        self.kv = kv
        self.num_layers = 0  # that a chunk may pass step by step; 0: it passes all at once
        self.relief = Relief(step_budget_tokens, max_num_sequences)
        self.max_num_drafting = max_num_drafting
        self.speculation = Speculation(draft_model)
        self.share = FairShare()
        self.estimates = Estimates(has_fixed=is_launched)
        self.waiting = WaitingQueue(self.share, self.estimates, max_waiting_tokens)
        self.running: OrderedDict[str, Sequence] = OrderedDict()
        self.num_drafted = self.num_accepted = 0  # of guessed tokens, ever
        self._expected_share = _EXPECTED_AT_FIRST
        self._num_steps = 0
        self._told: dict[str, Told] = {}  # those who wait
        self._read_alone = ""  # whose beginning was, in the last step with such a one

    @property
    def max_num_sequences(self) -> int:
        return self.relief.num_sequences

    @property
    def step_budget_tokens(self) -> int:
        return self.relief.budget_tokens

    # --- coming and going ---------------------------------------------------------------------

    def add(self, sequence: Sequence) -> bool:
        """Queue a sequence. False: the queue is full, nothing changed."""
        if not self.waiting.has_room(sequence):
            return False
        self.share.arrive(sequence.request.user)
        self.waiting.sequences.append(sequence)
        return True

    def find(self, sequence_id: str) -> Sequence | None:
        if sequence_id in self.running:
            return self.running[sequence_id]
        return next((s for s in self.waiting.sequences if s.id == sequence_id), None)

    def remove(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        """Forget a sequence that has ended, wherever it is; what it has computed may be used again."""
        sequence.take_back()
        if self.running.pop(sequence.id, None) is None:
            self.waiting.sequences.remove(sequence)
        else:
            self.estimates.learn_output(sequence.num_output)
        self.share.leave(sequence.request.user)
        self._release(sequence, is_reusable=is_reusable)

    def _release(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        computed = sequence.cache_ids(sequence.num_computed) if is_reusable else ()
        self.kv.release(sequence.id, computed, sequence.request.kv_salt)
        self.speculation.release(sequence, is_reusable=is_reusable)

    @property
    def is_idle(self) -> bool:
        return not self.running and not self.waiting

    # --- the step -----------------------------------------------------------------------------

    def plan(self) -> Plan:
        """The next step as (sequence, number of tokens); empty when there is nothing to do."""
        self.waiting.sort(self.running.values())
        self._give_way()
        budget = self.step_budget_tokens
        plan: Plan = []
        for sequence in [s for s in self.running.values() if s.is_decoding]:
            if sequence.num_promised and self.is_full(sequence):
                continue  # the token that ends it is being drawn
            sequence.draft = []
            # A preemption for an earlier one may have taken this one out of the batch.
            if budget and sequence.id in self.running and self._make_room(sequence, keep=plan):
                plan.append((sequence, 1))
                budget -= 1
        modest = self._modest()
        share = None
        if plan:
            is_urgent = modest is not None
            budget, share = self._budget_beside_writers(budget, len(plan), is_urgent=is_urgent)
        budget = min(budget, self._shared_budget())
        if modest is not None and budget:
            budget = self._read_modest(plan, modest, budget)
        self._read_on(plan, budget)
        if self.num_layers:
            plan = layered(
                plan, self.running.values(), self.num_layers, share, budget=self.step_budget_tokens
            )
        self._charge(plan)
        return plan

    def is_full(self, sequence: Sequence) -> bool:
        """Whether no token can follow its last one."""
        has_all = sequence.num_output >= sequence.request.params.max_tokens
        return has_all or len(sequence.token_ids) >= self.kv.max_context_tokens

    def _budget_beside_writers(
        self, budget: int, num_writers: int, *, is_urgent: bool
    ) -> tuple[int, float | None]:
        """What may be read in this step, and what share of that should be, where less is possible. Now
        and then nothing, to see how long a calm step takes: it grows with their number and length."""
        least = LEAST_CHUNK_TOKENS if self.kv.shares_prefixes else _LEAST_CHUNK_WITH_STATES
        # One alone may wait. Of others each waits with all that it asked, a writer a little each step.
        # Who finds no place yet is helped by nothing that is read.
        num_places = self.max_num_sequences - len(self.running)
        num_to_read = self._num_reading + min(len(self.waiting), max(0, num_places))
        crowd = 2 * (num_to_read - 1) / num_writers
        chunk_tokens = self.estimates.chunk_tokens(num_writers, is_urgent=is_urgent, crowd=crowd)
        if chunk_tokens is None and not self.estimates.reading_s:
            return budget, None
        self._num_steps += 1
        if self._num_steps % (_CALM_EVERY_AT_FIRST if chunk_tokens is None else _CALM_EVERY) == 0:
            return 0, None
        if chunk_tokens is None:
            return budget, None
        # At least so much: it has to come to an end.
        return min(budget, max(least, int(chunk_tokens))), min(1.0, chunk_tokens / least)

    def shrink(self, plan: Plan) -> bool:
        """A step found no memory and advanced nobody: the next ones are smaller. Who has no place in
        them any more waits, the newest first. False: this one was as small as can be."""
        if not self.relief.shrink(sum(num for _, num in plan), len(plan)):
            return False
        for sequence in list(reversed(self.running.values())):
            if len(self.running) <= self.max_num_sequences:
                break
            self._preempt(sequence)
        for sequence in self.running.values():
            sequence.draft, sequence.chunk = [], None
        return True

    def guess(self, plan: Plan, grammar_of: GrammarOf | None = None) -> Plan:
        """The plan, with guesses behind the last tokens of those who decode."""
        if places := self._places(plan):
            self.speculation.guess(places, len(plan), grammar_of)
        return [(sequence, num + len(sequence.draft)) for sequence, num in plan]

    @property
    def may_guess(self) -> bool:
        """While few decode: rows are nearly free then, and later they are others' time. So they are
        while prompts are to be read; one whose image is being looked at is not in any step."""
        in_steps = [s for s in self.running.values() if not s.is_looking]
        is_calm = not self.waiting and all(s.is_decoding for s in in_steps)
        return is_calm and len(in_steps) <= self.max_num_drafting

    def _places(self, plan: Plan) -> list[Place]:
        """Room for guesses."""
        if not self.may_guess:
            return []
        budget = self.step_budget_tokens - len(plan)
        places = []
        for sequence, _ in plan:
            length = len(sequence.token_ids)
            num_left = sequence.request.params.max_tokens - sequence.num_output
            context_left = self.kv.max_context_tokens - length
            most = min(budget, MOST_DRAFTED, num_left - 1, context_left - 1)
            if most > 0 and self.kv.reserve(sequence.id, length + 1 + most):
                places.append(Place(sequence, most, self.estimates.num_tokens(sequence)))
                budget -= most
        return places

    @property
    def num_wrong(self) -> int:
        """Tokens that were computed and thrown away."""
        return self.num_drafted - self.num_accepted

    def accept(self, sequence: Sequence, num_accepted: int) -> None:
        """So much of a draft was right: those are tokens as well."""
        self.num_drafted += len(sequence.draft)
        self.num_accepted += num_accepted
        self.speculation.learn(sequence, num_accepted)
        sequence.draft = []
        self.charge(sequence, OUTPUT_COST * num_accepted)

    @property
    def _num_reading(self) -> int:
        return sum(s.is_reading for s in self.running.values())

    def images_by_turn(self) -> list[Sequence]:
        """Whose prompts have images, in the order in which those are looked at."""
        running = [s for s in self.running.values() if s.request.images]
        return sorted(
            running, key=lambda s: (RANK[s.request.priority], self.share.of(s.request.user))
        )

    def _shared_budget(self) -> int:
        is_shared = self._num_reading + len(self.waiting) > 1
        return (is_shared and self.estimates.shared_tokens()) or self.step_budget_tokens

    def _modest(self) -> Sequence | None:
        """Whose prompt is to be read for a user who has nothing else here, while another, of no higher
        class, has several."""
        running = self.running.values()
        num_all = Counter(s.request.user for s in (*running, *self.waiting.sequences))
        if not running or max(num_all.values()) < 2:
            return None
        highest = min(RANK[s.request.priority] for s in running)
        reading = [s for s in running if s.is_reading]
        for sequence in (*reading, *self.waiting.sequences[:1]):
            rank = RANK[sequence.request.priority]
            if num_all[sequence.request.user] == 1 and rank <= highest:
                return sequence
        return None

    def _read_modest(self, plan: Plan, sequence: Sequence, budget: int) -> int:
        """Its beginning is read alone, unless another's was in the last step; what comes later has half
        of the budget, as the others together. Returns what is left for them."""
        if sequence.id not in self.running:
            is_full = len(self.running) >= self.max_num_sequences
            if is_full or self._has_sibling_in_prefill(sequence) or not self._take_in(sequence):
                return budget
        beginning = _ALONE_STEPS * (self.estimates.shared_tokens() or 0) or self.step_budget_tokens
        is_beginning = sequence.num_computed - sequence.num_cached < beginning
        is_alone = is_beginning and self._read_alone in ("", sequence.id)
        self._read_alone = sequence.id if is_alone else ""
        num_tokens = min(budget if is_alone else -(-budget // 2), self._at_once(sequence))
        plan.append((sequence, num_tokens))
        return 0 if is_alone else budget - num_tokens

    def _read_on(self, plan: Plan, budget: int) -> None:
        """Spend the budget on prompts. The oldest has half of it, so that it comes to its end; the
        rest goes to newcomers and to who has least to read, so that a long one stops nobody."""
        planned = {sequence.id for sequence, _ in plan}
        reading = [s for s in self.running.values() if s.is_reading and s.id not in planned]
        if not budget or not reading:
            self._admit(plan, budget)
            return
        oldest = reading[0]
        has_company = len(reading) > 1 or bool(self.waiting)
        num_oldest = min(self._at_once(oldest), -(-budget // 2) if has_company else budget)
        budget -= num_oldest
        for sequence in sorted(reading[1:], key=_by_rest):
            kept = budget // 2 if self.waiting else 0
            if num_tokens := min(budget - kept, self._at_once(sequence)):
                plan.append((sequence, num_tokens))
                budget -= num_tokens
        left = self._admit(plan, budget)
        plan.append((oldest, min(self._at_once(oldest), num_oldest + left)))

    def _at_once(self, sequence: Sequence) -> int:
        return sequence.num_at_once(max(1, self.step_budget_tokens // _READ_AGAIN_SHARE))

    def charge(self, sequence: Sequence, cost: float) -> None:
        """In prompt tokens; below 0 where a step computes less than was planned."""
        self.share.charge(sequence.request.user, cost, sequence.request.weight)

    def _charge(self, plan: Plan) -> None:
        for sequence, num_tokens in plan:
            cost = OUTPUT_COST if sequence.is_decoding else sequence.worth_tokens(num_tokens)
            self.charge(sequence, cost)
        decay = (_EXPECTED_AT_FIRST - _EXPECTED_AT_LEAST) / _EXPECTED_STEPS
        self._expected_share = max(_EXPECTED_AT_LEAST, self._expected_share - decay)

    # --- admission ----------------------------------------------------------------------------

    def _admit(self, plan: Plan, budget: int) -> int:
        """Let waiting ones begin to be read; returns what is left of the budget."""
        if not self.waiting or not budget or len(self.running) >= self.max_num_sequences:
            return budget
        for sequence in self.waiting.sequences.copy():
            if not budget or len(self.running) >= self.max_num_sequences:
                return budget
            if self._has_sibling_in_prefill(sequence):
                continue  # a moment later most of its prompt is there to be copied
            if not self._take_in(sequence):
                return budget  # nobody overtakes it, or it would never be its turn
            num_tokens = min(budget, self._at_once(sequence))
            plan.append((sequence, num_tokens))
            budget -= num_tokens
        return budget

    def _take_in(self, sequence: Sequence, *, is_due: bool = False) -> bool:
        """Make a waiting sequence a running one, behind what is cached of it. False: no room."""
        if self.running and not is_due and not self._is_expected_to_fit(sequence):
            return False
        # What is to be rated needs the logits in front of it: nothing behind that is taken over.
        salt = sequence.request.kv_salt
        num_cached = self.kv.attach(sequence.id, sequence.unrated_beginning, salt)
        sequence.num_computed = num_cached
        if not self.kv.reserve(sequence.id, len(sequence.token_ids) + 1):
            self._release(sequence)
            sequence.num_computed = 0
            return False
        self.waiting.sequences.remove(sequence)
        self.running[sequence.id] = sequence
        sequence.reading_since_s = monotonic()
        if sequence.admitted_s is None:
            sequence.num_cached = num_cached
            sequence.admitted_s = sequence.reading_since_s
        return True

    def _is_expected_to_fit(self, sequence: Sequence) -> bool:
        """Whether this and all running ones will probably find room up to their ends.

        Reserving all that they may write would leave most of the cache empty, since few write that
        much; reserving nothing would admit what has to be preempted soon.
        """
        growth = sum(map(self._expected_growth, [*self.running.values(), sequence]))
        needed = self.kv.used_tokens + len(sequence.token_ids) + growth
        return needed <= self.kv.capacity_tokens

    def _expected_growth(self, sequence: Sequence) -> float:
        """Tokens that it may write still: a share of what it is allowed, or twice the usual."""
        left = sequence.request.params.max_tokens - sequence.num_output
        usual = max(16.0, 2 * self.estimates.output_tokens - sequence.num_output)
        return min(left, usual, self._expected_share * min(left, self.kv.capacity_tokens))

    def _has_sibling_in_prefill(self, sequence: Sequence) -> bool:
        """Whether a running sequence is just computing what this one would copy: half of its prompt
        at least, and all that both begin with."""
        request, prompt_ids = sequence.request, sequence.prompt_cache_ids
        num_shared = max(_LEAST_SHARED_TOKENS, len(prompt_ids) // 2)
        beginning = prompt_ids[:num_shared]
        is_copied = self.kv.shares_prefixes and request.params.num_prompt_logprobs is None
        if len(beginning) < num_shared or not is_copied:
            return False
        return any(
            other.num_computed < other.num_prompt
            and other.request.kv_salt == request.kv_salt
            and other.prompt_cache_ids[:num_shared] == beginning
            and other.num_computed < count_common(other.prompt_cache_ids, prompt_ids)
            for other in self.running.values()
        )

    # --- giving way ---------------------------------------------------------------------------

    def _give_way(self) -> None:
        """Where all places are taken: one for a higher class, or for somebody who has none.

        The one that goes keeps what it has computed while there is room, so it loses little.
        """
        if not self.waiting:
            return
        first = self.waiting.sequences[0]
        self._give_memory_to(first)
        if len(self.running) < self.max_num_sequences:
            return
        victim = self._who_gives_way_to(first)
        if victim is None or self._has_sibling_in_prefill(first):
            return
        used_tokens = self.kv.used_tokens - len(victim.token_ids)
        if used_tokens + len(first.token_ids) < self.kv.capacity_tokens:
            self._preempt(victim)
            self._take_in(first, is_due=True)

    def _give_memory_to(self, first: Sequence) -> None:
        """Where the cache is full: those of lower classes go, the newest first, until it will fit.

        None goes for nothing, where all of them together would not make room.
        """
        rank = RANK[first.request.priority]
        lower = [s for s in reversed(self.running.values()) if RANK[s.request.priority] > rank]
        others = [s for s in self.running.values() if RANK[s.request.priority] <= rank]
        if not lower or self._is_expected_to_fit(first) or self._has_sibling_in_prefill(first):
            return
        growth = sum(map(self._expected_growth, [*others, first]))
        left_tokens = sum(len(s.token_ids) for s in [*others, first])
        if others and left_tokens + growth > self.kv.capacity_tokens:
            return
        while lower and not self._is_expected_to_fit(first):
            self._preempt(lower.pop(0))

    def _who_gives_way_to(self, first: Sequence) -> Sequence | None:
        """The newest of a lower class; else the newest of who has most, if `first`'s user has none."""
        rank, newest_first = RANK[first.request.priority], list(reversed(self.running.values()))
        for sequence in newest_first:
            if RANK[sequence.request.priority] > rank:
                return sequence
        num_running = Counter(s.request.user for s in newest_first)
        greediest, num_most = num_running.most_common(1)[0]
        if num_most < 2 or num_running[first.request.user]:
            return None
        theirs = (s for s in newest_first if s.request.user == greediest)
        return next((s for s in theirs if RANK[s.request.priority] == rank), None)

    def _make_room(self, sequence: Sequence, keep: Plan) -> bool:
        """Reserve KV for one more token; preempts the newest sequences if there is none."""
        while not self.kv.reserve(sequence.id, len(sequence.token_ids) + 1):
            planned = {s.id for s, _ in keep}  # not before it is asked for: there may be hundreds
            victim = next((s for s in reversed(self.running.values()) if s.id not in planned), None)
            if victim is None:
                return False
            self._preempt(victim)
            self._expected_share = min(_EXPECTED_AT_FIRST, self._expected_share + 0.1)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence) -> None:
        """Take a sequence out of the batch; what is no longer cached of it is computed again later.

        Recomputing beats swapping for the sizes at hand (engines.md: swap was .91 of recompute).
        """
        del self.running[victim.id]
        victim.take_back()
        self._release(victim)
        victim.forget_computed()
        self.waiting.sequences.append(victim)

    # --- honest estimates ---------------------------------------------------------------------

    def changed_positions(self) -> Iterable[tuple[str, Queued]]:
        """A `Queued` for every waiting sequence whose position is not the one last reported, or whose
        wait is notably another."""
        told, self._told = self._told, {}
        if not self.waiting:
            return
        now_s = monotonic()
        for sequence, position, wait_s in self.waiting.waits(list(self.running.values())):
            before = told.get(sequence.id)
            if before is None or before.is_stale(position, wait_s, now_s):
                self._told[sequence.id] = Told(position, wait_s, now_s)
                yield sequence.id, Queued(position, wait_s)
            else:
                self._told[sequence.id] = before


def _by_rest(sequence: Sequence) -> tuple[int, int]:
    """Higher classes first, and of one class who has least to read."""
    return RANK[sequence.request.priority], sequence.num_pending
