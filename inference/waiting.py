"""The waiting queue: bounded in tokens, ordered by class and fair share, honest about the wait."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from inference.fair_share import OUTPUT_COST, FairShare
from inference.gathering import MOST_ON_GPU_S
from inference.priority import RANK, has_room, has_room_for_images
from inference.reading_line import ReadingLine
from inference.sequence import Sequence

_FIRST_GUESS_TOKENS = 256  # of an answer's length, until some have ended
UNNOTICED_S = 0.025  # between two tokens of 40 a second, faster than anybody reads
LEAST_CHUNK_TOKENS = 4
_SPARE = 0.4  # of a calm step, for reading beside those who write: what varies comes on top
_SHARED_STEP_S = 0.05  # of reading, where others wait to be read
_LEAST_SHARED_TOKENS = 64  # but no less, or the weights are read for too few
_URGENT_SPARE = 2.0  # for a user's only request, beside those of a user who has several
_MOST_DEARER = 4.0  # that a token has become within a step that took some through a layer
_TOLD_EVERY_S = 1.0
_LEAST_CHANGE, _LEAST_CHANGE_S = 1 / 3, 1.0  # of an estimated wait
_LEAST_GAIN = 1 / 2  # of what a step that reads costs anyway, for reading
_CROWD_STEP_S = 0.1  # of reading at least, where more wait to be read than write


def _mixed(old: float | None, new: float, share: float) -> float:
    """An average that forgets."""
    return new if old is None else (1 - share) * old + share * new


@dataclass(slots=True)
class Estimates:
    """What has been measured of this worker: tokens per second and lengths of answers.

    `calm_step_s` is a step that reads no prompt, of `calm_rows` tokens (wrong guesses among them);
    `reading_s` what each further token adds to one, and `fixed_s` what a step that reads takes longer
    however little it reads: learnt on a GPU alone (`has_fixed`), where it may be most of it.
    """

    tokens_per_s: float | None = None
    output_tokens: float = _FIRST_GUESS_TOKENS
    calm_step_s: float | None = None
    calm_rows: int = 1
    reading_s: float | None = None
    has_fixed: bool = False
    _reading_weight: float = 0.0
    _line: ReadingLine = field(default_factory=ReadingLine)

    @property
    def fixed_s(self) -> float:
        return self._line.fixed_s

    def learn_step(
        self,
        num_tokens: float,
        took_s: float,
        num_read: float = 0,
        guessing_s: float = 0.0,
        num_wrong: int = 0,
        num_layered: int = 0,
    ) -> None:
        """`num_read` of the tokens were prompts'; `num_wrong` guesses were computed beside them for
        nothing. What guessing ahead took is no part of a calm step: beside prompts nobody guesses.
        `num_layered` passed some of the layers, and are counted for what that is worth."""
        if took_s <= 0:
            return
        self.tokens_per_s = _mixed(self.tokens_per_s, num_tokens / (took_s + guessing_s), 0.05)
        if not num_read:
            num_rows = int(num_tokens) + num_wrong
            self.calm_step_s = _mixed(self.calm_beside(num_rows), took_s, 0.3)
            self.calm_rows = num_rows
            return
        is_alone = num_read == num_tokens
        num_more, beside_s = num_read, 0.0
        if self.calm_step_s is not None and (self.has_fixed or not is_alone):
            num_more, beside_s = num_tokens - self.calm_rows, self.calm_step_s
        elif not is_alone:
            return
        # Where writers have left, what a step varies by would be the price of few tokens.
        if 2 * num_more < num_read:
            return
        more_s = max(0.0, took_s - beside_s)
        if self.has_fixed:
            self._line.learn(num_more, more_s, beside_s)
            self.reading_s = self._line.token_s
        else:
            self._learn_reading(more_s / num_more, num_read, num_layered)

    def tokens_in(self, took_s: float) -> float:
        """How many tokens the worker would have computed meanwhile; 0 while that is not known."""
        return took_s * (self.tokens_per_s or 0.0)

    def calm_beside(self, num_writers: int) -> float | None:
        """A calm step of so many writers, where it was measured with others: a writer's token is
        multiplied as a prompt's is. Were each new writer taken for the cost of reading, of sixteen that
        come together the last would be read in crumbs."""
        if self.calm_step_s is None:
            return None
        more_s = (num_writers - self.calm_rows) * (self.reading_s or 0.0)
        return max(0.5 * self.calm_step_s, self.calm_step_s + more_s)

    def _learn_reading(self, token_s: float, num_read: float, num_layered: int) -> None:
        """A few tokens tell of the step more than of tokens, the first ones as well: a worker begins
        with three, and beside writers would go on with crumbs, which hardly tell better.

        So the first samples have their share of what there is (Kingma and Ba 2015, section 3). A layer
        tells as much of many tokens as it has rows; but what disturbs its step is divided by little.
        """
        share = 0.2 * min(1.0, max(num_read, num_layered) / 64)
        if num_layered and self.reading_s:
            token_s = min(token_s, _MOST_DEARER * self.reading_s)
        self._reading_weight = _mixed(self._reading_weight, 1.0, share)
        self.reading_s = _mixed(self.reading_s, token_s, share / self._reading_weight)

    def chunk_tokens(
        self, num_writers: int, *, is_urgent: bool = False, crowd: float = 1.0
    ) -> float | None:
        """So much of prompts may be read beside those who write; None while nothing is known.

        Their step then takes .4 as long again as a calm one (urgent: three times), with what varies
        not twice as long, or as long as nobody notices.

        `crowd` tells how many more wait to be read than write. Of sixteen that come together the
        first two would else write to their end before the last is read: a few who write wait for the
        many, who then write beside them; as long as a user's only request may make them wait, or a
        tenth of a second.
        """
        calm_s = self.calm_beside(num_writers)
        if calm_s is None or not self.reading_s:
            return None
        if self.has_fixed and not self._line.is_sure:
            return self._line.untried_tokens
        spare_s = max((_URGENT_SPARE if is_urgent else _SPARE) * calm_s, UNNOTICED_S - calm_s)
        if crowd > 1 and not is_urgent:
            most_s = max(_URGENT_SPARE * calm_s, _CROWD_STEP_S)
            spare_s = max(spare_s, min(crowd * _SPARE * calm_s, most_s))
        # Where a step that reads is longer than that anyway, they would wait again and again for little:
        # it takes twice as long, up to what their readers see nothing of.
        unseen_s = max(MOST_ON_GPU_S - calm_s - self.fixed_s, self.fixed_s * _LEAST_GAIN)
        return self._num_within(spare_s, min(self.fixed_s, unseen_s))

    def _num_within(self, spare_s: float, least_s: float) -> float:
        """Tokens that are read in so long, or, where most of it is lost anyway, in `least_s`."""
        assert self.reading_s
        return max(spare_s - self.fixed_s, least_s) / self.reading_s

    def shared_tokens(self) -> int | None:
        """So much is read in a step while others wait to be read: whoever comes next waits for the
        step's end. None while nothing is known."""
        if not self.reading_s:
            return None
        return max(_LEAST_SHARED_TOKENS, int(self._num_within(_SHARED_STEP_S, self.fixed_s)))

    def learn_output(self, num_tokens: int) -> None:
        self.output_tokens = 0.75 * self.output_tokens + 0.25 * num_tokens

    def num_tokens(self, sequence: Sequence) -> float:
        """Tokens that a sequence will probably compute still."""
        left = sequence.request.params.max_tokens - sequence.num_output
        expected = max(16.0, self.output_tokens - sequence.num_output)
        return sequence.num_pending + min(left, expected)

    def cost(self, sequence: Sequence) -> float:
        """The same in prompt tokens."""
        num_prompt = sequence.num_pending
        return num_prompt + OUTPUT_COST * (self.num_tokens(sequence) - num_prompt)


@dataclass(frozen=True, slots=True)
class Told:
    """What one that waits was told last, and when."""

    position: int
    wait_s: float | None
    told_s: float

    def is_stale(self, position: int, wait_s: float | None, now_s: float) -> bool:
        """Whether the position is another, or the wait by a third: that is told once a second at most,
        for nobody plans by less, and it may change with each step."""
        if position != self.position:
            return True
        if now_s - self.told_s < _TOLD_EVERY_S or wait_s is None:
            return False
        if self.wait_s is None:
            return True
        return abs(wait_s - self.wait_s) >= max(_LEAST_CHANGE_S, _LEAST_CHANGE * self.wait_s)


@dataclass(slots=True)
class WaitingQueue:
    """Sequences that are not running, those that were preempted among them.

    `sequences` are in the order of the last `sort`, and who has come since is behind them.
    """

    share: FairShare
    estimates: Estimates
    max_tokens: int
    sequences: list[Sequence] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def num_tokens(self) -> float:
        """Tokens that all of them will probably compute."""
        return sum(map(self.estimates.num_tokens, self.sequences))

    def has_room(self, sequence: Sequence) -> bool:
        """As `priority.has_room`. And who was accepted before always has: an answer that has begun does
        not end because its worker did."""
        num_tokens = self.estimates.num_tokens
        waiting = ((s.request.priority, num_tokens(s)) for s in self.sequences)
        images = ((s.request.priority, s.request.image_bytes) for s in self.sequences)
        request = sequence.request
        return request.is_replay or (
            has_room(request.priority, num_tokens(sequence), waiting, self.max_tokens)
            and has_room_for_images(request.priority, request.image_bytes, images)
        )

    def sort(self, running: Iterable[Sequence]) -> None:
        """Higher classes first; within, who was accepted before, and then by what their users have had
        and what goes before for them.

        That is start-time fair queueing: a request begins, in its user's own time, when all that the
        user has running and has queued before will have been computed.
        """
        if len(self.sequences) < 2:
            return
        queued: dict[str, float] = {}
        for sequence in running:
            self._queue(queued, sequence)
        begins: dict[str, float] = {}
        for sequence in sorted(self.sequences, key=lambda s: s.arrived_s):
            user = sequence.request.user
            begins[sequence.id] = self.share.of(user) + queued.get(user, 0.0)
            self._queue(queued, sequence)
        self.sequences.sort(
            key=lambda s: (
                RANK[s.request.priority],
                not s.request.is_replay,
                begins[s.id],
                s.arrived_s,
            ),
        )

    def _queue(self, queued: dict[str, float], sequence: Sequence) -> None:
        user, weight = sequence.request.user, sequence.request.weight
        queued[user] = queued.get(user, 0.0) + self.estimates.cost(sequence) / weight

    def waits(self, running: list[Sequence]) -> Iterator[tuple[Sequence, int, float | None]]:
        """Each with its position from 1 and the seconds until it will probably be admitted.

        What runs and what waits in front shares the measured rate; None before any was measured.
        """
        rate = self.estimates.tokens_per_s
        ahead = sum(map(self.estimates.num_tokens, running)) / max(1, len(running))
        for position, sequence in enumerate(self.sequences, start=1):
            yield sequence, position, ahead / rate if rate else None
            ahead += self.estimates.num_tokens(sequence)

    def wait_s(self) -> float | None:
        """How long the whole queue will take."""
        rate = self.estimates.tokens_per_s
        return self.num_tokens / rate if rate else None
