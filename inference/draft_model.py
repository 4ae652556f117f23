"""A small model that guesses what a large one will draw next. Imports torch.

It has a KV cache and a runner of its own. Of each sequence that it guesses for it keeps a copy with how
far that is computed: what was guessed wrong is cut off, what is new is read in chunks, and then all
sequences decode together, one token of draft per step. Tokens are drawn as the large model draws them:
by the same rules and with the same noise.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

from torch import Tensor
from torch.nn.functional import pad

from inference.draft_pace import Pace
from inference.grammar import GrammarState
from inference.kv import KVCache
from inference.logits import Row, shaped
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.sampler import sample
from inference.sequence import Sequence
from inference.speculation import GrammarOf, Place, Task


@dataclass(slots=True, eq=False)
class _Copy:
    """A sequence as the draft model knows it; its first `num_real` tokens are not guesses."""

    sequence: Sequence
    num_real: int = 0

    def follow(self, token_ids: list[int]) -> list[int]:
        """Become equal to the real sequence, which only grows; returns what is new of it."""
        own, same = self.sequence.token_ids, self.num_real
        most = min(len(own), len(token_ids))
        while same < most and own[same] == token_ids[same]:
            same += 1
        new = token_ids[same:]
        own[same:] = new
        self.num_real = len(token_ids)
        # The last token is always computed again, or there would be no logits behind it.
        self.sequence.num_computed = min(self.sequence.num_computed, same, self.num_real - 1)
        return new


@dataclass(slots=True, eq=False)
class _Guess:
    """A draft that grows."""

    task: Task
    own: Sequence
    grammar: GrammarState | None
    ids: list[int] = field(default_factory=list)
    is_over: bool = False

    def row(self) -> Row:
        mask = None
        if self.grammar is not None:
            try:
                mask = self.grammar.mask()
            except RuntimeError:  # it is out of fuel; the real one may not be
                self.is_over = True
        return Row(self.task.sequence, tuple(self.ids), mask)

    def take(self, token_id: int, *, is_end: bool) -> None:
        self.ids.append(token_id)
        self.is_over |= is_end or len(self.ids) >= self.task.length
        if self.grammar is not None and not self.is_over:
            self.grammar.take(token_id)
            self.is_over = self.grammar.is_complete


class DraftModel:
    """Follows sequences of a large model, and guesses for them.

    `vocab_size` and `eos_ids` are the large model's; of `own_vocab_size` tokens this one knows.
    """

    def __init__(
        self,
        runner: ModelRunner,
        *,
        eos_ids: Iterable[int],
        vocab_size: int,
        own_vocab_size: int,
    ) -> None:
        self.runner = runner
        self.kv: KVCache = runner.kv
        self.pace = Pace()
        self.eos_ids = frozenset(eos_ids)
        self.vocab_size = vocab_size
        self.own_vocab_size = own_vocab_size
        self._copies: OrderedDict[str, _Copy] = OrderedDict()  # the least recently asked for first
        self._hopeless: set[str] = set()  # sequences that have no place here, until they end

    # --- following ----------------------------------------------------------------------------

    def follow(self, places: list[Place]) -> list[Task]:
        """Take note of what is new, and make room. Left out is who has no place here: whose text is
        longer than this model's context or its cache, or holds tokens that it does not know."""
        asked = {place.sequence.id for place in places}
        tasks = []
        for place in places:
            if place.sequence.id not in self._hopeless:
                if task := self._follow(place, asked):
                    tasks.append(task)
                else:
                    self._drop(place.sequence.id)
                    self._hopeless.add(place.sequence.id)
        return tasks

    def _follow(self, place: Place, asked: set[str]) -> Task | None:
        sequence, length = place.sequence, len(place.sequence.token_ids)
        most = min(place.most, self.kv.max_context_tokens - length)
        if most <= 0:
            return None
        copy = self._copies.get(sequence.id)
        if copy is None:
            copy = self._copies[sequence.id] = self._begin(sequence)
        self._copies.move_to_end(sequence.id)
        new = copy.follow(sequence.token_ids)
        is_known = max(new, default=0) < self.own_vocab_size
        if not is_known or not self._make_room(sequence.id, length + most, asked):
            return None
        return Task(place, copy.sequence.num_pending, most)

    def _begin(self, sequence: Sequence) -> _Copy:
        """A copy, behind what is cached of its beginning."""
        prompt_ids = sequence.request.prompt_ids
        own = Sequence(GenerateRequest(sequence.id, "", prompt_ids, SamplingParams(max_tokens=1)))
        salt = sequence.request.cache_salt
        own.num_computed = self.kv.attach(sequence.id, sequence.token_ids, salt)
        own.token_ids = sequence.token_ids[: own.num_computed]
        return _Copy(own, own.num_computed)

    def _make_room(self, sequence_id: str, num_tokens: int, asked: set[str]) -> bool:
        """Room for so many tokens, if need be in place of who is not asked for in this step."""
        while not self.kv.reserve(sequence_id, num_tokens):
            idle = next((other for other in self._copies if other not in asked), None)
            if idle is None:
                return False
            self._drop(idle)
        return True

    def _drop(self, sequence_id: str) -> None:
        self._copies.pop(sequence_id, None)
        self.kv.release(sequence_id)

    def release(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        """Forget a sequence; what is computed of it may be used by those who begin alike."""
        self._hopeless.discard(sequence.id)
        copy = self._copies.pop(sequence.id, None)
        computed: list[int] = []
        if copy is not None and is_reusable:
            copy.follow(sequence.token_ids)
            computed = sequence.token_ids[: copy.sequence.num_computed]
        self.kv.release(sequence.id, computed, sequence.request.cache_salt)

    def check(self) -> None:
        """Prove that the books of an idle engine are right. Raises AssertionError."""
        self.kv.check()
        assert not self._copies, "a copy of a sequence that is gone"
        assert not self._hopeless
        assert self.kv.used_tokens == 0

    # --- guessing -----------------------------------------------------------------------------

    def guess(self, tasks: list[Task], grammar_of: GrammarOf) -> None:
        """Read what the tasks say, and give those that have a length their draft."""
        plan, guesses = [], {}
        for task in tasks:
            own = self._copies[task.sequence.id].sequence
            plan.append((own, task.num_to_read))
            if task.length:
                grammar = grammar_of(own.id)
                guesses[own.id] = _Guess(task, own, grammar.fork() if grammar else None)
        while plan:
            started_s = monotonic()
            result = self.runner.run(plan)
            due = [guesses[own.id] for own in result.due]
            self._draw(due, result.logits)
            num_read = sum(num for _, num in plan) - len(plan)
            self.pace.learn_draft_step(monotonic() - started_s, num_read)
            plan = [(guess.own, 1) for guess in due if not guess.is_over]
        for guess in guesses.values():
            guess.task.sequence.draft = guess.ids

    def _draw(self, due: list[_Guess], logits: Tensor) -> None:
        """Draw a token for each, as the large model would. logits: (rows, own vocab)."""
        if not due:
            return
        rows = [guess.row() for guess in due]
        logits = shaped(self._in_vocabulary(logits), rows, self.eos_ids)
        ids = sample(logits, [row.params for row in rows], [row.position for row in rows])
        for guess, row, token_id in zip(due, rows, ids, strict=True):
            # Where all tokens that this model knows are forbidden, any may come out.
            is_forbidden = row.mask is not None and not row.mask[token_id]
            if is_forbidden or token_id >= self.own_vocab_size:
                guess.is_over = True
                continue
            guess.take(token_id, is_end=self._is_end(token_id, row.params))
            if not guess.is_over:
                guess.own.token_ids.append(token_id)

    def _in_vocabulary(self, logits: Tensor) -> Tensor:
        """(rows, own vocab) -> (rows, vocab): models pad their vocabulary to different lengths."""
        missing = self.vocab_size - logits.shape[1]
        return pad(logits, (0, missing), value=float("-inf")) if missing else logits

    def _is_end(self, token_id: int, params: SamplingParams) -> bool:
        is_eos = token_id in self.eos_ids and params.ends_at_eos
        return is_eos or token_id in params.stop_token_ids
