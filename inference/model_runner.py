"""One step of the model: a plan of sequences becomes packed tensors and comes back as logits."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from inference import attention
from inference.adapters import Adapters
from inference.attention import StepContext
from inference.gpu.stream import DeviceStream, Stream
from inference.host_copy import HostCopy
from inference.kv import KVCache
from inference.layered_chunk import LayeredChunk
from inference.layered_rows import LayeredRows
from inference.pinned import sent
from inference.sequence import Sequence
from inference.spans import Span
from inference.step_positions import StepPositions
from inference.vision.deep_rows import DeepRows
from inference.vision.eyes import Eyes, Seen


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step computed.

    `due` are the sequences that now need a token, `logits` theirs: (rows, vocab), one row for each and
    one more for each token of its draft. A sequence in the middle of its prompt gets none. `prompts`
    are for those who asked how likely their prompt was: logits (tokens, vocab) in front of the next
    tokens that are not rated yet.
    """

    due: list[Sequence]
    logits: Tensor
    prompts: list[tuple[Sequence, Tensor]]

    def one_by_one(self) -> "list[StepResult]":
        """The same for each sequence that is due."""
        rows = torch.split(self.logits, [1 + len(sequence.draft) for sequence in self.due])
        return [StepResult([s], own, []) for s, own in zip(self.due, rows, strict=True)]


class ModelRunner:
    """Runs a loaded model over the KV cache. Knows nothing of queues, text or processes.

    `layers_seen` are the layers that have attended over the cache so far.
    """

    def __init__(
        self,
        model: nn.Module,
        kv: KVCache,
        adapters: Adapters | None = None,
        eyes: Eyes | None = None,
    ) -> None:
        self.model = model
        self.adapters = adapters or Adapters()
        self.eyes = eyes
        self.device = next(model.parameters()).device
        self.stream: Stream = DeviceStream(self.device)
        self.kv = kv
        self.layers_seen: set[int] = set()
        self._copy: HostCopy | None = None  # while it sleeps

    def sleep(self) -> int:
        """Leave the device: the weights go to the host, where they take so many bytes, and what was
        cached is forgotten. Nothing runs until `wake`."""
        self.kv.forget_all()
        parts = [self.model]
        if self.eyes is not None:
            self.eyes.forget_all()
            parts.append(self.eyes.module)
        self._copy = self._copy or HostCopy(nn.ModuleList(parts))
        return self._copy.num_bytes

    def wake(self) -> None:
        """Bring the weights back. Raises torch.OutOfMemoryError."""
        if self._copy is not None:
            self._copy.restore()
            self._copy = None

    @torch.inference_mode()
    def run(self, plan: list[tuple[Sequence, int]]) -> StepResult:
        """Compute the planned tokens and advance `num_computed`; drafts are not counted in, nor a chunk
        that has not passed all layers. One sequence at most has such a one."""
        chunk = next((sequence.chunk for sequence, _ in plan if sequence.chunk), None)
        ids: list[int] = []
        positions = StepPositions()
        spans: list[Span] = []
        last_rows: list[int] = []
        prompt_rows: list[int] = []
        prompts: list[tuple[Sequence, range]] = []
        due: list[Sequence] = []
        seen: list[Seen] = []
        for sequence, num_tokens in _in_order(plan):
            num_drafted = len(sequence.draft)
            start, end = sequence.num_computed, sequence.num_computed + num_tokens - num_drafted
            if unrated := sequence.unrated_between(start, end):
                prompts.append((sequence, unrated))
                prompt_rows += [len(ids) + position - start for position in unrated]
            if sequence.request.images and self.eyes is not None:
                for places, rows_seen in self.eyes.between(sequence, start, end):
                    seen.append(Seen([len(ids) + place for place in places], rows_seen))
            ids += sequence.token_ids[start:end] + sequence.draft
            positions.add(sequence, start, end + num_drafted)
            adapter = sequence.request.adapter
            each_alone = start >= sequence.num_prompt
            spans.append(Span(sequence.id, start, num_tokens, each_alone, adapter))
            is_through = sequence.chunk is None or sequence.chunk.is_last
            if is_through and end == len(sequence.token_ids):
                due.append(sequence)
                last_rows += range(len(ids) - 1 - num_drafted, len(ids))
        # A step without a due sequence still needs one row: transformers reads 0 as "all rows".
        rows = last_rows + prompt_rows
        if chunk is None:
            context = StepContext(self.kv, spans, self.layers_seen)
            logits = (
                self._compute(context, ids, positions.times, rows or [0], seen, positions.planes)
                if seen
                else self.forward(ids, positions.times, spans, rows or [0])
            )
        else:
            is_bare = len(plan) == 1 and not chunk.is_last  # no row comes to the end
            some_rows = rows if rows or is_bare else [0]
            logits = self._forward_layered(chunk, ids, positions, spans, some_rows, seen)
        for sequence, num_tokens in plan:
            if sequence.chunk is not None and not sequence.chunk.is_through:
                continue
            sequence.chunk = None
            sequence.num_computed += num_tokens - len(sequence.draft)
        of_prompts = torch.split(
            logits[len(last_rows) : len(rows)], [len(unrated) for _, unrated in prompts]
        )
        return StepResult(
            due,
            logits[: len(last_rows)],
            [(s, own) for (s, _), own in zip(prompts, of_prompts, strict=True)],
        )

    def wait(self) -> None:
        """Until the device has computed all that it was told."""
        self.stream.mark().wait()

    def forward(
        self, ids: list[int], positions: list[int], spans: list[Span], rows: list[int]
    ) -> Tensor:
        return self._compute(StepContext(self.kv, spans, self.layers_seen), ids, positions, rows)

    def _forward_layered(
        self,
        chunk: LayeredChunk,
        ids: list[int],
        positions: StepPositions,
        spans: list[Span],
        rows: list[int],
        seen: list[Seen],
    ) -> Tensor:
        """The last span is the chunk's."""
        context = StepContext(self.kv, spans, self.layers_seen)
        context.layered = LayeredRows(chunk, context)
        logits = self._compute(context, ids, positions.times, rows, seen, positions.planes)
        chunk.take(context.layered.left)  # only now: a step that fails may be tried again
        return logits

    def _compute(
        self,
        context: StepContext,
        ids: list[int],
        positions: list[int],
        rows: list[int],
        seen: SequenceOf[Seen] = (),
        planes: SequenceOf[list[int]] = (),
    ) -> Tensor:
        """`planes` are the lines and columns of all positions, where some are in a grid."""
        places = [place for one in seen for place in one.places]
        with attention.in_step(context):
            self.adapters.enter(context.spans)
            # In one copy.
            given = (ids, positions, rows, places, *planes)
            numbers = sent(torch.tensor([*chain.from_iterable(given)]), self.device)
            on_ids, on_positions, on_rows, on_places, *on_planes = torch.split(
                numbers, [*map(len, given)]
            )
            if on_planes:
                context.planes = torch.stack((on_positions, *on_planes))
            read = {"input_ids": on_ids[None]}
            if places:
                model: Any = self.model
                embedded = model.get_input_embeddings()(on_ids[None])
                found = sent(torch.cat([one.rows for one in seen]), self.device)
                width = embedded.shape[-1]
                embedded[0, on_places] = found[:, :width].to(embedded.dtype)
                context.deep = DeepRows.of(places, on_places, found[:, width:], width)
                read = {"inputs_embeds": embedded}
            output = self.model(
                **read,
                position_ids=on_positions[None],
                use_cache=False,
                logits_to_keep=on_rows,
            )
        logits: Tensor = output.logits[0]
        # Ten of the 173 model files know no logits_to_keep and return every row.
        logits = logits if logits.shape[0] == len(rows) else logits[on_rows]
        return logits.float()  # on a processor, bfloat16's argmax takes four times as long as both


def _in_order(plan: list[tuple[Sequence, int]]) -> list[tuple[Sequence, int]]:
    """Those of one adapter next to each other, so that its products are one for all of them; who is not
    in all layers behind the others."""
    if not any(sequence.request.adapter or sequence.chunk for sequence, _ in plan):
        return plan
    return sorted(plan, key=lambda planned: (bool(planned[0].chunk), planned[0].request.adapter))
