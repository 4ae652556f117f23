"""Whether a draft model's guesses pay for the time they take, and how many do. Pure, torch-free.

A step that judges a draft gives the accepted tokens for nothing; the draft costs a step of the small
model for each of its tokens. Source: Leviathan et al. 2023, "Fast Inference from Transformers via
Speculative Decoding" (the expected number of accepted tokens, and the best length), here for a batch:
all drafts of a step are made together, so that time counts once and tokens count for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.ngrams import MOST_DRAFTED

_MARGIN = 1.05  # a gain below is within what is measured wrong
_TRY_EVERY = 64  # refusals: times and texts change
_CALM_EVERY = 32  # drafts: the step without one has to be known, too
_MEMORY = 0.7  # of a time, per measurement
_FEW_TOKENS = 8  # beside which a step takes as long as without
_FIRST_LENGTH = 2  # while nothing is known of the draft model's times
_FIRST_CHUNK_TOKENS = 64
_LEAST_CHUNK_TOKENS = 16
_MOST_CHUNK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds: of a step without drafts, what a drafted token adds to it, and of a draft step."""

    step_s: float
    row_s: float
    draft_step_s: float


def expected_accepted(rate: float, length: int) -> float:
    """Of `length` tokens, each right with probability `rate` if all before it are."""
    return sum(rate**i for i in range(1, length + 1))


def tokens_per_s(
    rates: Sequence[float], lengths: Sequence[int], num_writing: int, times: StepTimes
) -> float:
    """What all that write get together, when those of some `rates` have drafts of these lengths."""
    accepted = sum(map(expected_accepted, rates, lengths))
    draft_s = max(lengths, default=0) * times.draft_step_s
    return (num_writing + accepted) / (times.step_s + sum(lengths) * times.row_s + draft_s)


def best_length(
    rates: Sequence[float], mosts: Sequence[int], num_writing: int, times: StepTimes
) -> int:
    """The length of draft at which all get most tokens per second; 0 where that is none.

    Each draft is cut to its own `most`.
    """
    best, best_speed = 0, _MARGIN * num_writing / times.step_s
    for length in range(1, max(mosts, default=0) + 1):
        speed = tokens_per_s(rates, [min(length, most) for most in mosts], num_writing, times)
        if speed > best_speed:
            best, best_speed = length, speed
    return best


def gained_s(rate: float, num_left: float, times: StepTimes) -> float:
    """Time that drafts will save for one answer of which `num_left` tokens are to be written."""
    length = best_length([rate], [MOST_DRAFTED], 1, times)
    return num_left * (times.step_s - 1 / tokens_per_s([rate], [length], 1, times))


class Pace:
    """Rolling times of a worker's steps and of its draft model's, and what follows from them."""

    def __init__(self) -> None:
        self.step_s: float | None = None
        self.row_s = 0.0
        self.draft_step_s: float | None = None
        self.reading_s: float | None = None  # per token
        self._num_refused = self._num_since_calm = 0

    def learn_step(self, took_s: float, num_drafted: int) -> None:
        """A step in which all decode, with so many drafted tokens."""
        if not num_drafted:
            self._num_since_calm = 0
            self.step_s = _mixed(self.step_s, took_s)
        elif self.step_s is not None:
            self.row_s = _mixed(self.row_s, max(0.0, took_s - self.step_s) / num_drafted)

    def learn_draft_step(self, took_s: float, num_read: int) -> None:
        """A step of the draft model, with so many tokens beyond one for each sequence."""
        if num_read <= _FEW_TOKENS:
            self.draft_step_s = _mixed(self.draft_step_s, took_s)
        else:
            added_s = max(0.0, took_s - (self.draft_step_s or 0.0))
            self.reading_s = _mixed(self.reading_s, added_s / num_read)

    @property
    def times(self) -> StepTimes | None:
        if self.step_s is None or self.draft_step_s is None:
            return None
        return StepTimes(self.step_s, self.row_s, self.draft_step_s)

    @property
    def is_calm_due(self) -> bool:
        """Whether nobody should guess for a step, so that its time is known still."""
        return self._num_since_calm >= _CALM_EVERY

    def length(self, rates: Sequence[float], mosts: Sequence[int], num_writing: int) -> int:
        """How many tokens to guess in this step; now and then one where it seems not to pay."""
        if not mosts or self.step_s is None:
            return 0
        times = self.times
        if times is None:
            return min(_FIRST_LENGTH, max(mosts))
        length = best_length(rates, mosts, num_writing, times)
        if not length:
            self._num_refused += 1
            length = int(self._num_refused % _TRY_EVERY == 0)
        self._num_since_calm += length > 0
        return length

    def chunk_tokens(self) -> int:
        """What the draft model may read in one step: half as long as the step, or nearly nothing."""
        if self.step_s is None or not self.reading_s:
            return _FIRST_CHUNK_TOKENS
        num_tokens = int(0.5 * self.step_s / self.reading_s)
        return min(_MOST_CHUNK_TOKENS, max(_LEAST_CHUNK_TOKENS, num_tokens))

    def pays_to_read(self, num_behind: int, rate: float, num_left: float) -> bool:
        """Whether it will save more time than it takes to read so much first."""
        times = self.times
        if times is None or self.reading_s is None:
            return self.step_s is not None
        return gained_s(rate, num_left, times) > num_behind * self.reading_s


class Acceptance:
    """How often the draft model is right about one sequence; it rests where it mostly is not.

    `prior_rate` is what is expected of a sequence that nothing is known of.
    """

    _WEIGHT = 4  # of the prior, in guesses
    _FORGETS = 0.9  # per draft
    _POOR = 0.25
    _HOPE = 0.4  # after a rest
    _FIRST_PAUSE_TOKENS, _LONGEST_PAUSE_TOKENS = 24, 768

    def __init__(self, prior_rate: float) -> None:
        self.most = MOST_DRAFTED // 2
        self._begin(max(prior_rate, self._HOPE))
        self._pauses_until = 0
        self._pause_tokens = self._FIRST_PAUSE_TOKENS

    def _begin(self, rate: float) -> None:
        self._num_right, self._num_tried = self._WEIGHT * rate, float(self._WEIGHT)

    @property
    def rate(self) -> float:
        return self._num_right / self._num_tried

    def is_paused(self, num_tokens: int) -> bool:
        return num_tokens < self._pauses_until

    def learn(self, num_drafted: int, num_accepted: int, num_tokens: int) -> None:
        """What became of a draft of a sequence that is `num_tokens` long now."""
        self._num_right = self._FORGETS * self._num_right + num_accepted
        self._num_tried = self._FORGETS * self._num_tried + num_judged(num_drafted, num_accepted)
        if num_accepted == num_drafted:
            self.most = min(MOST_DRAFTED, self.most + 2)
            self._pause_tokens = self._FIRST_PAUSE_TOKENS
        elif 2 * num_accepted < num_drafted:
            self.most = max(1, self.most - 1)
        if self.rate < self._POOR:
            self._begin(self._HOPE)
            self._pauses_until = num_tokens + self._pause_tokens
            self._pause_tokens = min(2 * self._pause_tokens, self._LONGEST_PAUSE_TOKENS)


def num_judged(num_drafted: int, num_accepted: int) -> int:
    """Guesses that tell something: nothing is known of those behind the first wrong one."""
    return min(num_drafted, num_accepted + 1)


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else _MEMORY * old + (1 - _MEMORY) * new
