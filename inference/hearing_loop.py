"""The heart of a transcription model's worker: windows of sound in, tokens out, one window a step.

A window takes seconds, so within it the worker listens after each token: whoever has gone is let go, and
who has come is in the queue. That queue is bounded, and whoever has had least goes first.
"""

import logging
from collections.abc import Callable, Iterator
from time import monotonic

from inference.encode_messages import EncodeRequest
from inference.errors import EncodingFailed, ModelError, ModelRefused, Overloaded, RequestError
from inference.fair_share import FairShare
from inference.hearing_messages import WINDOW_SAMPLES, Heard, HearRequest
from inference.hearing_model import HearingModel
from inference.messages import (
    Cached,
    EngineStats,
    Failed,
    GenerateRequest,
    Probe,
    Reply,
    StepFrame,
)
from inference.priority import RANK, has_room
from inference.waiting import Estimates

logger = logging.getLogger(__name__)
_SIGN_EVERY_S = 5.0


class HearingLoop:
    """Owns the queue. Single-threaded; does no I/O."""

    def __init__(self, model: HearingModel, *, max_waiting_tokens: int) -> None:
        self.model = model
        self.estimates = Estimates()
        self._max_waiting_tokens = max_waiting_tokens
        self._share = FairShare()
        self._waiting: dict[str, HearRequest] = {}  # in the order in which they came
        self._running: HearRequest | None = None
        self._is_aborted = False
        self._updates: list[tuple[str, Reply]] = []
        self._listen: Callable[[float], None] = lambda wait_s: None
        self._send: Callable[[StepFrame], None] = lambda frame: None

    def interrupt_by(
        self, listen: Callable[[float], None], send: Callable[[StepFrame], None]
    ) -> None:
        """Within a window `listen` is to submit what has arrived; a sign of life goes to `send`."""
        self._listen, self._send = listen, send

    def submit(self, request: GenerateRequest | EncodeRequest | HearRequest) -> None:
        """Queue a request, or answer at once why not."""
        try:
            checked = self._checked(request)
        except (RequestError, ModelError) as error:
            self._updates.append((request.request_id, Failed.of(error)))
            return
        waiting = ((one.caller.priority, one.num_tokens) for one in self._waiting.values())
        room = has_room(
            checked.caller.priority, checked.num_tokens, waiting, self._max_waiting_tokens
        )
        if not (room or checked.is_replay):
            overloaded = Overloaded.expecting(self._wait_s())
            self._updates.append((checked.request_id, Failed.of(overloaded)))
            return
        self._waiting[checked.request_id] = checked
        self._share.arrive(checked.caller.user)

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine: it may just have ended. Nobody hears of it."""
        if self._running is not None and self._running.request_id == request_id:
            self._is_aborted = True
        elif request := self._waiting.pop(request_id, None):
            self._share.leave(request.caller.user)

    def probe(self, probe: Probe) -> None:
        """Nothing is kept of what was heard."""
        self._updates.append((probe.request_id, Cached((0,) * len(probe.prompts))))

    def give_way(self, for_s: float) -> None:
        """A window is nobody's chore."""

    def _checked(self, request: GenerateRequest | EncodeRequest | HearRequest) -> HearRequest:
        """Whoever asks has seen to all of this; a model that reads beyond its tables would die."""
        if not isinstance(request, HearRequest):
            raise RequestError("This model only writes down what it hears.")
        layout = self.model.layout
        if not 0 < len(request.samples) <= 2 * WINDOW_SAMPLES or len(request.samples) % 2:
            raise RequestError("The sound is no window of 30 seconds.")
        if request.language_id not in (None, *layout.languages.values()):
            raise RequestError("The model does not know this language.")
        if request.task_id not in (layout.tasks.values() or (None,)):
            raise RequestError("The model does not know this task.")
        is_known = all(0 <= one < layout.first_time_id for one in request.prompt_ids)
        if len(request.prompt_ids) > layout.max_tokens // 2 or not is_known:
            raise RequestError("The prompt is too long, or none.")
        return request

    # --- checks -------------------------------------------------------------------------------

    def canary(self) -> None:
        """Ready means that a window was heard. Raises ModelRefused."""
        layout = self.model.layout
        task_id = layout.tasks.get("transcribe")
        left = iter([True, True, False])
        request = HearRequest("canary", bytes(2 * WINDOW_SAMPLES), None, task_id)
        heard = self.model.hear(request, lambda: next(left, False))
        if not heard.avg_logprob == heard.avg_logprob:
            raise ModelRefused("The model computes no numbers (NaN) of silence.")

    def check(self) -> None:
        """Prove that an idle engine's books are right. Raises AssertionError."""
        assert not self._waiting

    # --- the step -----------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._updates

    def step(self) -> Iterator[StepFrame]:
        """Hear one window; a frame even where none has ended, as a sign of life."""
        started_s = monotonic()
        if self._waiting:
            self._hear(min(self._waiting.values(), key=self._turn))
        took_s = monotonic() - started_s
        updates, self._updates = tuple(self._updates), []
        yield StepFrame(updates, EngineStats(num_waiting=len(self._waiting), step_ms=took_s * 1e3))

    def _turn(self, request: HearRequest) -> tuple[int, float]:
        """`min` takes the first of equals, which came first."""
        return RANK[request.caller.priority], self._share.of(request.caller.user)

    def _hear(self, request: HearRequest) -> None:
        del self._waiting[request.request_id]
        self._running, self._is_aborted = request, False
        self._share.charge(request.caller.user, request.num_tokens, request.caller.weight)
        started_s = monotonic()
        try:
            reply: Reply = self._heard(request)
        except Exception as error:
            logger.exception("request %s fails", request.request_id)
            reply = Failed(EncodingFailed.code, f"The engine could not hear this: {error}")
        else:
            self.estimates.learn_step(request.num_tokens, monotonic() - started_s)
        self._running = None
        self._share.leave(request.caller.user)
        if not self._is_aborted:
            self._updates.append((request.request_id, reply))

    def _heard(self, request: HearRequest) -> Heard:
        told_s = monotonic()

        def goes_on() -> bool:
            nonlocal told_s
            self._listen(0.0)
            if monotonic() - told_s > _SIGN_EVERY_S:
                told_s = monotonic()
                stats = EngineStats(num_running=1, num_waiting=len(self._waiting))
                self._send(StepFrame((), stats))
            return not self._is_aborted

        return self.model.hear(request, goes_on)

    def _wait_s(self) -> float | None:
        """How long the whole queue will take."""
        rate = self.estimates.tokens_per_s
        return sum(one.num_tokens for one in self._waiting.values()) / rate if rate else None
