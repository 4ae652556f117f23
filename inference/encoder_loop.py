"""The heart of an encoder's worker: requests in, results out, one frame per step.

A chore's step is interrupted between two layers by whoever has come meanwhile: somebody's question waits
for a few milliseconds of it, and not for a whole passage. Where an answer begins by another model, the
chore stands still, because both want the same processors.
"""

import logging
from array import array
from collections.abc import Callable, Iterator
from time import monotonic

from torch import Tensor

from inference.encode_messages import Encoded, EncodeRequest
from inference.encoder_model import PACKED_TOKENS, EncoderModel
from inference.encoder_queue import Due, EncoderQueue, EncoderTask, batches_by_length, by_adapter
from inference.encoder_selftest import check_batches
from inference.errors import EncodingFailed, ModelError, Overloaded, RequestError
from inference.hearing_messages import HearRequest
from inference.messages import (
    Cached,
    EngineStats,
    Failed,
    GenerateRequest,
    Probe,
    Reply,
    StepFrame,
)
from inference.pooling import unit
from inference.waiting import Estimates

logger = logging.getLogger(__name__)
# A newcomer waits for the end of a step; shorter ones cost throughput on small models.
_STEP_S = 0.2
_CHORE_STEP_S = 0.02  # of the class that nobody waits for: at least one input, and seldom more
_LEAST_STEP_TOKENS = 256
_MAX_STEP_TOKENS = 16_384


class EncoderLoop:
    """Owns the queue and the results so far. Single-threaded; does no I/O."""

    def __init__(self, model: EncoderModel, *, max_waiting_tokens: int) -> None:
        self.model = model
        self.queue = EncoderQueue(max_waiting_tokens)
        self.estimates = Estimates()
        self._updates: list[tuple[str, Reply]] = []
        self._forward_ms = 0.0  # of the step
        self._interrupted_s = 0.0  # likewise
        self._rests_until_s = self._may_rest_s = 0.0
        self._listen: Callable[[float], None] = lambda wait_s: None
        self._send: Callable[[StepFrame], None] = lambda frame: None

    def interrupt_by(
        self, listen: Callable[[float], None], send: Callable[[StepFrame], None]
    ) -> None:
        """Within chores `listen` is to submit what has arrived, or does within so many seconds; the
        results of what cannot wait go to `send`."""
        self._listen, self._send = listen, send

    # --- requests -----------------------------------------------------------------------------

    def submit(self, request: GenerateRequest | EncodeRequest | HearRequest) -> None:
        """Queue a request, or answer at once why not."""
        try:
            checked = self._checked(request)
        except (RequestError, ModelError) as error:
            self._emit(request.request_id, Failed.of(error))
            return
        if not self.queue.add(checked):
            self._emit(request.request_id, Failed.of(Overloaded.expecting(self._wait_s())))

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine: it may just have ended. Nobody hears of it."""
        self.queue.remove(request_id)

    def _checked(self, request: GenerateRequest | EncodeRequest | HearRequest) -> EncodeRequest:
        """The tokenizer has seen to all of this; a model that reads beyond its tables would die."""
        if not isinstance(request, EncodeRequest):
            raise RequestError("This model writes no answers.")
        layout = self.model.layout
        for text in request.inputs:
            if not 0 < len(text) <= layout.window_tokens:
                raise RequestError(f"An input of {len(text)} tokens does not fit into the window.")
            if not (min(text.ids) >= 0 and max(text.ids) < layout.vocab_size):
                raise RequestError("An input holds token ids that the model does not know.")
            if text.type_ids and len(text.type_ids) != len(text.ids):
                raise RequestError("An input has more or fewer types than tokens.")
        if not request.inputs:
            raise RequestError("There is no input.")
        if request.adapter:
            self.model.adapters.require(request.adapter)
        return request

    def probe(self, probe: Probe) -> None:
        """An encoder keeps nothing of what it has read."""
        self._emit(probe.request_id, Cached((0,) * len(probe.prompts)))

    # --- checks -------------------------------------------------------------------------------

    def canary(self) -> None:
        """Ready means that a batch was encoded. Raises ModelRefused."""
        check_batches(self.model)

    def check(self) -> None:
        """Prove that an idle engine's books are right. Raises AssertionError."""
        assert not self.queue.num_tokens

    # --- the step -----------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self.queue and not self._updates

    def step(self) -> Iterator[StepFrame]:
        """Compute some inputs; a frame even where no request has ended, as a sign of life."""
        started_s = monotonic()
        self._forward_ms = self._interrupted_s = 0.0
        due = self.queue.take(self._budget_tokens(), self._tokens_in(_CHORE_STEP_S))
        packed = PACKED_TOKENS if self.model.can_pack else 0
        is_chore = bool(due) and due[0][0].request.is_chore
        between = self._look_up if is_chore else None
        batches = [batch for own in by_adapter(due) for batch in batches_by_length(own, packed)]
        went_well = [self._run(batch, between) for batch in batches]
        took_s = monotonic() - started_s - self._interrupted_s
        if due:
            self.estimates.learn_step(sum(task.length(i) for task, i in due), took_s)
        updates, self._updates = tuple(self._updates), []
        yield StepFrame(
            updates, self._stats(due, took_s, self._forward_ms if all(went_well) else 0.0)
        )

    def _budget_tokens(self) -> int:
        return min(_MAX_STEP_TOKENS, max(_LEAST_STEP_TOKENS, self._tokens_in(_STEP_S)))

    def _tokens_in(self, seconds: float) -> int:
        return int((self.estimates.tokens_per_s or 0) * seconds)

    def give_way(self, for_s: float) -> None:
        """Compute no chore for so long; half of the time they go on, however many answers begin."""
        now_s = monotonic()
        if now_s >= self._may_rest_s:
            self._rests_until_s = now_s + for_s
            self._may_rest_s = now_s + 2 * for_s

    def _look_up(self) -> None:
        """From a chore: take in what has arrived, compute what cannot wait, and send it; rest."""
        started_s = monotonic()
        self._listen(0.0)
        self._compute_urgent()
        while (rest_s := self._rests_until_s - monotonic()) > 0:
            self._listen(rest_s)
            self._compute_urgent()
        self._interrupted_s += monotonic() - started_s

    def _compute_urgent(self) -> None:
        before = self._forward_ms, self._interrupted_s
        while self.queue.has_urgent:
            for frame in self.step():
                self._send(frame)
        self._forward_ms, self._interrupted_s = before

    def _run(self, batch: list[Due], between: Callable[[], None] | None) -> bool:
        """False: it had to be run one by one."""
        started_s, interrupted_s = monotonic(), self._interrupted_s
        try:
            rows = self._rows(batch, between)
        except Exception:
            logger.exception("a batch of %d inputs failed", len(batch))
            self._run_one_by_one(batch)
            return False
        took_s = monotonic() - started_s - (self._interrupted_s - interrupted_s)
        self._forward_ms += took_s * 1e3
        for (task, index), row in zip(batch, rows, strict=True):
            self._take(task, index, row)
        return True

    def _run_one_by_one(self, batch: list[Due]) -> None:
        """Find the culprit of a failed batch: its request fails alone."""
        for task, index in batch:
            try:
                (row,) = self._rows([(task, index)])
            except Exception as error:
                logger.exception("request %s fails by itself", task.request.request_id)
                self._fail(task, f"The engine could not run this request: {error}")
            else:
                self._take(task, index, row)

    def _rows(self, batch: list[Due], between: Callable[[], None] | None = None) -> list[Tensor]:
        inputs = [task.request.inputs[index] for task, index in batch]
        adapter = batch[0][0].request.adapter
        if self.model.can_batch:
            return list(self.model.encode(inputs, between, adapter))
        return [self.model.encode([each], between, adapter)[0] for each in inputs]

    def _take(self, task: EncoderTask, index: int, row: Tensor) -> None:
        """A result has come: (width,). The last one of a request ends it."""
        if not self.queue.has(task):
            return  # another input of the request has failed
        if not bool(row.isfinite().all()):
            self._fail(task, "The model produced no numbers (NaN) for an input.")
            return
        dimensions = task.request.dimensions
        row = row if dimensions is None else unit(row[:dimensions])
        task.rows[index] = row.numpy().tobytes()
        if task.is_done:
            self.queue.remove(task.request.request_id)
            values = array("f", b"".join(task.rows[i] for i in range(len(task.rows))))
            self._emit(task.request.request_id, Encoded(values, len(row)))

    def _fail(self, task: EncoderTask, message: str) -> None:
        self.queue.remove(task.request.request_id)
        self._emit(task.request.request_id, Failed(EncodingFailed.code, message))

    # --- frames -------------------------------------------------------------------------------

    def _emit(self, request_id: str, update: Reply) -> None:
        self._updates.append((request_id, update))

    def _wait_s(self) -> float | None:
        """How long the whole queue will take."""
        rate = self.estimates.tokens_per_s
        return self.queue.num_tokens / rate if rate else None

    def _stats(self, due: list[Due], took_s: float, forward_ms: float) -> EngineStats:
        lengths = [task.length(index) for task, index in due]
        return EngineStats(
            num_running=len({task.arrival for task, _ in due}),
            num_waiting=len(self.queue),
            step_ms=took_s * 1e3,
            forward_ms=forward_ms,
            num_encoded_tokens=sum(lengths),
            num_longest=max(lengths, default=0),
        )
