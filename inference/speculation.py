"""Guessing ahead: who guesses, how far, and what is learnt of it.

What a sequence has said before is looked up first (`ngrams`), which costs nothing; where that finds
nothing, a draft model is asked, if there is one and its guesses pay for their time (`draft_pace`). The
model then rates all of a draft in one step, and what it would have drawn itself is accepted: the output
is the same as without, but for the rounding of bfloat16 (see `EngineConfig`). Since noise depends on
(seed, position, token) alone, a draft model that agrees draws the same tokens at any temperature.
Knows integers only. Source: Leviathan et al. 2023 for drafts and their verification.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from inference.draft_pace import Acceptance, Pace, num_judged
from inference.grammar import GrammarState
from inference.ngrams import NgramDrafter
from inference.sequence import Sequence

logger = logging.getLogger(__name__)
GrammarOf = Callable[[str], GrammarState | None]
_NEAR_TOKENS = 16  # to catch up: read without a question
_FIRST_RATE = 0.7
_SHARED_MEMORY = 0.99  # of what all sequences were like, per draft


@dataclass(frozen=True, slots=True)
class Place:
    """Where guesses may stand: behind a sequence, `most` of them. `num_left` tokens are expected."""

    sequence: Sequence
    most: int
    num_left: float


@dataclass(slots=True)
class Task:
    """What the draft model has to do for a sequence: it is `num_behind` tokens behind, at least one.

    It reads `num_to_read` of them; where those are all, it may guess `length` tokens, at most `most`.
    """

    place: Place
    num_behind: int
    most: int
    num_to_read: int = 0
    length: int = 0

    @property
    def sequence(self) -> Sequence:
        return self.place.sequence


class Guesser(Protocol):
    """A draft model. It follows the sequences that it guesses for, until they are released."""

    pace: Pace

    def follow(self, places: list[Place]) -> list[Task]: ...
    def guess(self, tasks: list[Task], grammar_of: GrammarOf) -> None: ...
    def release(self, sequence: Sequence, *, is_reusable: bool) -> None: ...
    def check(self) -> None: ...


@dataclass(slots=True)
class _Record:
    """What is known of one sequence."""

    acceptance: Acceptance
    ngrams: NgramDrafter = field(default_factory=NgramDrafter)
    is_by_model: bool = False  # the draft that is judged next


class Speculation:
    """The drafts of all sequences of one worker."""

    def __init__(self, model: Guesser | None = None) -> None:
        self.model = model
        self.pace = model.pace if model else Pace()
        self.num_asked = self.num_right = 0  # of tokens that the draft model has guessed, ever
        self._records: dict[str, _Record] = {}
        self._rolling_right, self._rolling_judged = (
            _FIRST_RATE * 8,
            8.0,
        )  # of the draft model, rolling

    def guess(
        self, places: list[Place], num_writing: int, grammar_of: GrammarOf | None = None
    ) -> None:
        """Make the drafts of a step in which so many write."""
        if self.model is not None and self.pace.is_calm_due:
            return
        left = []
        for place in places:
            sequence, record = place.sequence, self._record(place.sequence)
            sequence.draft = record.ngrams.draft(sequence.token_ids, place.most)
            record.is_by_model = not sequence.draft
            if not sequence.draft and not record.acceptance.is_paused(len(sequence.token_ids)):
                left.append(place)
        if self.model is not None and left:
            try:
                self._ask(self.model, left, num_writing, grammar_of or _no_grammar)
            except Exception:
                logger.warning("the draft model fails and is switched off", exc_info=True)
                self.model = None
                for place in left:
                    place.sequence.draft = []

    def _ask(
        self, model: Guesser, places: list[Place], num_writing: int, grammar_of: GrammarOf
    ) -> None:
        """Let the draft model read what is new, and guess where it has read all."""
        tasks = self._with_chunks(model.follow(places))
        ready = [task for task in tasks if task.num_to_read == task.num_behind]
        known = [self._record(task.sequence).acceptance for task in ready]
        mosts = [min(task.most, own.most) for task, own in zip(ready, known, strict=True)]
        length = self.pace.length([own.rate for own in known], mosts, num_writing)
        for task, most in zip(ready, mosts, strict=True):
            task.length = min(length, most)
        wanted = [task for task in tasks if task.length or task.num_to_read < task.num_behind]
        if wanted:
            model.guess(wanted, grammar_of)

    def _with_chunks(self, tasks: list[Task]) -> list[Task]:
        """Share what may be read in one step, so that a long prompt delays nobody's next token."""
        left, shared = self.pace.chunk_tokens(), []
        for task in sorted(tasks, key=lambda task: task.num_behind):
            task.num_to_read = min(left, task.num_behind)
            if task.num_to_read and self._is_worth_reading(task):
                shared.append(task)
                left -= task.num_to_read
        return shared

    def _is_worth_reading(self, task: Task) -> bool:
        rate = min(self._record(task.sequence).acceptance.rate, self._shared_rate)
        return task.num_behind <= _NEAR_TOKENS or self.pace.pays_to_read(
            task.num_behind, rate, task.place.num_left
        )

    def learn(self, sequence: Sequence, num_accepted: int) -> None:
        """The sequence's draft was judged: so many of its tokens were right."""
        num_drafted, num_tokens = len(sequence.draft), len(sequence.token_ids)
        if not num_drafted:
            return
        record = self._record(sequence)
        if not record.is_by_model:
            record.ngrams.learn(num_drafted, num_accepted, num_tokens)
            return
        self.num_asked += num_drafted
        self.num_right += num_accepted
        record.acceptance.learn(num_drafted, num_accepted, num_tokens)
        self._rolling_right = _SHARED_MEMORY * self._rolling_right + num_accepted
        judged = num_judged(num_drafted, num_accepted)
        self._rolling_judged = _SHARED_MEMORY * self._rolling_judged + judged

    @property
    def _shared_rate(self) -> float:
        return self._rolling_right / self._rolling_judged

    def _record(self, sequence: Sequence) -> _Record:
        record = self._records.get(sequence.id)
        if record is None:
            record = self._records[sequence.id] = _Record(Acceptance(self._shared_rate))
        return record

    def release(self, sequence: Sequence, *, is_reusable: bool = True) -> None:
        """A sequence has ended, or was taken out of the batch. Unknown ones are fine."""
        self._records.pop(sequence.id, None)
        if self.model is not None:
            self.model.release(sequence, is_reusable=is_reusable)

    def check(self) -> None:
        """Prove that an idle engine's books are right. Raises AssertionError."""
        assert not self._records, "something is known of a sequence that is gone"
        if self.model is not None:
            self.model.check()


def _no_grammar(sequence_id: str) -> None:
    return None
