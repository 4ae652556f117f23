"""A step in which all decode, computed and drawn on the device while the host does something else."""

import logging
from collections.abc import Sequence as Rows
from dataclasses import dataclass
from functools import partial
from time import monotonic

import torch
from torch import Tensor

from inference import attention
from inference.attention import StepContext
from inference.gpu.graphs import Graphs, buckets_up_to
from inference.gpu.sampling import Tier, draw, tier_of
from inference.gpu.step_buffers import Staged, StepBuffers
from inference.gpu.stream import DeviceStream, Mark, Stream
from inference.model_runner import ModelRunner
from inference.out_of_memory import is_fault
from inference.paged_kv import PagedKV
from inference.sequence import Sequence

logger = logging.getLogger(__name__)
_CAPTURED_TIERS = (Tier.GREEDY, Tier.OPEN, Tier.NARROW)


@dataclass(frozen=True, slots=True)
class Flight:
    """A step that was launched. `drawn` is there when `mark` is passed."""

    sequences: Rows[Sequence]
    drawn: Tensor
    mark: Mark
    launched_s: float

    def read(self) -> list[int]:
        """A token for each sequence, sampling.BROKEN where there were no numbers. Waits."""
        self.mark.wait()
        ids: list[int] = self.drawn[: len(self.sequences)].tolist()
        return ids


class DecodeStep:
    """Launches steps of a runner's model over its pages, of at most `num_sequences`.

    A sequence's last token need not be known: the one that it has drawn in the step before is taken, on
    the device.
    """

    def __init__(
        self,
        runner: ModelRunner,
        num_sequences: int,
        *,
        graphs: Graphs | None = None,
        stream: Stream | None = None,
        buckets: Rows[int] | None = None,
    ) -> None:
        """`buckets` are the numbers of rows that are computed, ascending, the last of them
        `num_sequences`; None: those of `buckets_up_to`."""
        assert isinstance(runner.kv, PagedKV)
        self.runner = runner
        self.kv = runner.kv
        self.device = runner.device
        self.buffers = StepBuffers(self.kv, num_sequences, self.device)
        self.graphs = Graphs() if graphs is None else graphs
        self.stream = DeviceStream(self.device) if stream is None else stream
        self.buckets = buckets_up_to(num_sequences) if buckets is None else [*buckets]
        self._logits = self._room_for_logits()

    # --- before requests ------------------------------------------------------------------------

    def capture(self) -> None:
        """For each bucket, the largest first, with rows that are nobody's."""
        with torch.inference_mode():
            for bucket in reversed(self.buckets):
                self._load(self.buffers.stage((), bucket))
                self.graphs.capture(("forward", bucket), partial(self._forward, bucket))
                for tier in _CAPTURED_TIERS:
                    self.graphs.capture(("draw", tier, bucket), partial(self._draw, tier, bucket))

    def leave(self) -> None:
        """The weights and the pages go: what reads them where they were goes first."""
        self.graphs.drop()
        self.buffers.forget()

    def come_back(self) -> None:
        """They are somewhere again. Without memory for graphs, steps go without them."""
        try:
            self.capture()
        except Exception as error:
            if is_fault(error):
                raise
            logger.warning("steps go without CUDA graphs from now on", exc_info=True)
            self.graphs.drop()

    def _load(self, staged: Staged) -> None:
        self.stream.submit(partial(self.buffers.load, staged))
        self.stream.mark().wait()

    @torch.inference_mode()
    def _room_for_logits(self) -> Tensor:
        """(sequences, vocab) float32; how large the vocabulary is, one forward tells."""
        self._load(self.buffers.stage((), 1))
        shape = (self.buffers.num_sequences, self._compute(1).shape[1])
        return torch.zeros(shape, dtype=torch.float32, device=self.device)

    # --- a step ---------------------------------------------------------------------------------

    def launch(self, sequences: Rows[Sequence]) -> Flight:
        """Compute and draw the next token of each; returns at once.

        They are at most `num_sequences`, have room in the cache for the token that is computed, and need
        nothing that only the host knows.
        """
        bucket = next(size for size in self.buckets if size >= len(sequences))
        tier = tier_of([sequence.request.params for sequence in sequences])
        try:
            staged = self.buffers.stage(sequences, bucket)
            drawn = self.buffers.room_for_drawn(bucket)
            self.stream.submit(partial(self._run, staged, bucket, tier, drawn))
            return Flight(sequences, drawn, self.stream.mark(), monotonic())
        except Exception:
            self.buffers.forget()
            raise

    @torch.inference_mode()
    def _run(self, staged: Staged, bucket: int, tier: Tier, drawn: Tensor) -> None:
        self.buffers.load(staged)
        self.graphs.run(("forward", bucket), partial(self._forward, bucket))
        self.graphs.run(("draw", tier, bucket), partial(self._draw, tier, bucket))
        drawn.copy_(self.buffers.drawn[:bucket], non_blocking=True)

    def _forward(self, bucket: int) -> None:
        self._logits[:bucket].copy_(self._compute(bucket))

    def _compute(self, bucket: int) -> Tensor:
        """(bucket, vocab)"""
        # Also where nothing was launched since: graphs are captured behind whatever step came before.
        self.runner.adapters.enter(())
        ids, positions, paged = self.buffers.step(bucket)
        with attention.in_step(StepContext(self.kv, [], self.runner.layers_seen, paged=paged)):
            output = self.runner.model(
                input_ids=ids[None], position_ids=positions[None], use_cache=False
            )
        logits: Tensor = output.logits[0]
        return logits

    def _draw(self, tier: Tier, bucket: int) -> None:
        knobs, positions = self.buffers.knobs_and_positions(bucket)
        self.buffers.keep_drawn(draw(self._logits[:bucket], positions, knobs, tier))

    def logits_of(self, flight: Flight) -> Tensor:
        """What it has computed, (sequences, vocab), until the next launch. Waits."""
        flight.mark.wait()
        return self._logits[: len(flight.sequences)]
