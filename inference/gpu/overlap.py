"""An engine loop that launches the next step before it has read the last one.

The device then never waits for the host: while it computes a step, the host takes what the step before
has drawn, tells it, and plans. What a step draws stays on the device, where the next one finds it. That
an answer has ended is therefore known a step late; what the step that is under way draws for it is
dropped, and so it is for one that was aborted or preempted. Its room in the cache goes to others at
once: they write there in later steps of the same stream. Sources: SGLang v0.4, "zero-overhead batch
scheduler"; vLLM's async scheduling.

Steps that need the host in between are run as by any `EngineLoop`, behind what is under way: those that
read prompts, verify drafts, or have rows that follow a grammar, have penalties or tell probabilities.
"""

import logging
from time import monotonic
from typing import Any

from inference.engine_loop import EngineLoop
from inference.gpu.decode_step import DecodeStep, Flight
from inference.gpu.sampling import BROKEN
from inference.logits import Row
from inference.out_of_memory import is_fault
from inference.sequence import Sequence
from inference.step_work import Computed

logger = logging.getLogger(__name__)
Plan = list[tuple[Sequence, int]]


class OverlappedLoop(EngineLoop):
    """As `EngineLoop`, which it is but for steps in which all decode. With `is_ahead` False those are
    computed and drawn on the device as well, but each is read before the next is launched."""

    def __init__(
        self, *args: Any, decode: DecodeStep, is_ahead: bool = True, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.decode = decode
        self.is_ahead = is_ahead
        self.num_ahead = 0  # steps that were launched before the last was read, ever
        self._flight: Flight | None = None  # launched, and not read
        self._landed_s = 0.0

    @property
    def is_idle(self) -> bool:
        return super().is_idle and self._flight is None

    def check(self) -> None:
        assert self._flight is None
        super().check()

    def sleep(self) -> int:
        self._land()  # of those who have left since it was launched
        self.decode.leave()
        return super().sleep()

    def wake(self) -> None:
        self.runner.wake()
        self.decode.come_back()
        self.canary()

    # --- the step -------------------------------------------------------------------------------

    def _compute(self, plan: Plan) -> Computed:
        if self.is_ahead and plan and self._can_fly(plan) and not self.scheduler.may_guess:
            return Computed(num_decoded=self._fly_ahead([sequence for sequence, _ in plan]))
        num_landed = self._land()
        computed = super()._compute(self._still(plan))
        return computed._replace(num_decoded=num_landed + computed.num_decoded)

    def _run(self, plan: Plan) -> None:
        """A step by itself: the one before is read."""
        if not self._can_fly(plan) or any(sequence.draft for sequence, _ in plan):
            super()._run(plan)
            return
        if self._is_launched([sequence for sequence, _ in plan]):
            self._land(is_learning=False)
        else:
            super()._run(plan)

    def _fly_ahead(self, sequences: list[Sequence]) -> int:
        """Launch a step, and read the one before; returns how many tokens that was."""
        before = self._flight
        if before is None:
            self._charged_s = self._landed_s = monotonic()
        if not self._is_launched(sequences):
            num_landed = self._land()
            return (
                num_landed + super()._compute(self._still([(s, 1) for s in sequences])).num_decoded
            )
        self.num_ahead += before is not None
        return self._read(before) if before is not None else 0

    def _is_launched(self, sequences: list[Sequence]) -> bool:
        """False: it could not be, and nothing has changed."""
        try:
            self._flight = self.decode.launch(sequences)
        except Exception as error:
            if is_fault(error):
                raise
            logger.exception("a step of %d sequences was not launched", len(sequences))
            return False
        for sequence in sequences:
            sequence.promise()
        return True

    def _can_fly(self, plan: Plan) -> bool:
        return all(s.is_decoding and _is_drawn_on_device(s) for s, _ in plan)

    def _still(self, plan: Plan) -> Plan:
        """Without those that have ended since it was made."""
        running = self.scheduler.running
        return [planned for planned in plan if running.get(planned[0].id) is planned[0]]

    # --- what was drawn -------------------------------------------------------------------------

    def _land(self, *, is_learning: bool = True) -> int:
        """Read what is under way, if anything is."""
        flight, self._flight = self._flight, None
        return self._read(flight, is_learning=is_learning) if flight is not None else 0

    def _read(self, flight: Flight, *, is_learning: bool = True) -> int:
        """Take the tokens of a step; returns how many it drew."""
        try:
            ids = flight.read()
        except Exception as error:
            if is_fault(error):
                raise  # the next process goes on with all answers
            logger.exception("a step of %d sequences failed", len(flight.sequences))
            self._give_up(flight)
            return 0
        self.scheduler.relief.note_calm()
        now_s = monotonic()
        took_s = now_s - max(flight.launched_s, self._landed_s)
        self._landed_s = now_s
        self._forward_ms = took_s * 1e3
        if is_learning:
            self.scheduler.estimates.learn_step(len(ids), took_s)
            self.scheduler.speculation.pace.learn_step(took_s, 0)
        self._charge([(sequence, 1) for sequence in flight.sequences])
        for sequence, token_id in zip(flight.sequences, ids, strict=True):
            self._take_drawn(sequence, token_id)
        return len(ids)

    def _take_drawn(self, sequence: Sequence, token_id: int) -> None:
        num_promised = sequence.take_back()
        if not num_promised:
            return  # it has ended, or gives way: then it draws the same again
        sequence.num_computed += 1
        self._take_safely(sequence, [(max(token_id, 0), (), token_id == BROKEN)])
        if num_promised > 1 and sequence.id in self.scheduler.running:
            sequence.promise()

    def _give_up(self, flight: Flight) -> None:
        """Nothing is known of what was under way: it is computed again."""
        self.decode.buffers.forget()
        later, self._flight = self._flight, None
        for sequence in (*flight.sequences, *(later.sequences if later else ())):
            sequence.take_back()


def _is_drawn_on_device(sequence: Sequence) -> bool:
    """Whether its next token follows from its logits and its knobs alone."""
    params = sequence.request.params
    is_told_more = params.num_logprobs is not None
    return not (
        params.grammar or is_told_more or sequence.request.adapter or Row(sequence).is_shaped
    )
