"""One step of a model with linear-attention layers, whose states are in slots."""

import inspect
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from inference import attention
from inference.adapters import Adapters
from inference.attention import StepContext
from inference.hybrid_kv import HybridKV
from inference.kv import KVCache
from inference.model_runner import ModelRunner, StepResult
from inference.sequence import Sequence
from inference.spans import Span
from inference.vision.eyes import Eyes

_Group = list[tuple[int, Span]]  # spans that run together, each behind its first row in the step


class HybridRunner(ModelRunner):
    """Runs what reads tokens in order, and would take a packed step for one long sequence.

    All that decode run as rows of one batch; a chunk of a prompt runs by itself.
    """

    def __init__(self, model: nn.Module, kv: HybridKV, adapters: Adapters | None = None) -> None:
        super().__init__(model, kv, adapters)
        self.hybrid_kv = kv
        self.states = kv.states
        self.layers_seen = kv.states.layers_seen  # those that keep a state count as well
        # Models without any attention call it by another name.
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache_params" if "cache_params" in parameters else "past_key_values"

    def run(self, plan: list[tuple[Sequence, int]]) -> StepResult:
        """As any runner does; where a chunk ends within a prompt, others may begin."""
        result = super().run(plan)
        for sequence, _ in plan:
            if sequence.num_computed < sequence.num_to_prefill:
                self.hybrid_kv.keep(sequence.id, sequence.num_computed)
        return result

    def forward(
        self, ids: list[int], positions: list[int], spans: list[Span], rows: list[int]
    ) -> Tensor:
        logits: dict[int, Tensor] = {}
        self.states.begin()
        for group in _groups(spans):
            logits |= self._forward_group(ids, positions, group, rows)
        found = torch.stack([logits[row] for row in rows])
        self.states.commit()  # the last that can fail, or states would be ahead of `num_computed`
        return found

    def _forward_group(
        self, ids: list[int], positions: list[int], group: _Group, rows: list[int]
    ) -> dict[int, Tensor]:
        """Spans of one length as a batch -> the logits (vocab) of those of the rows that are theirs."""
        num_tokens = group[0][1].num_tokens
        chunks = [range(begin, begin + num_tokens) for begin, _ in group]
        kept = [number for number, row in enumerate(chunks[0]) if row in rows or len(group) > 1]
        spans = [span for _, span in group]
        with attention.in_step(StepContext(self.kv, spans, self.layers_seen)):
            self.adapters.enter(spans)
            self.states.enter([s.sequence_id for s in spans], is_fresh=spans[0].start == 0)
            output = self.model(
                input_ids=torch.tensor([[ids[row] for row in chunk] for chunk in chunks]),
                position_ids=torch.tensor([[positions[row] for row in chunk] for chunk in chunks]),
                use_cache=True,
                logits_to_keep=torch.tensor(kept or [num_tokens - 1]),
                **{self._cache_name: self.states},
            )
        self.states.leave()
        logits: Tensor = output.logits  # (batch, kept, vocab)
        # Some model files know no logits_to_keep and return every token's.
        if kept and logits.shape[1] != len(kept):
            logits = logits[:, kept]
        return {
            chunk[number]: logits[which, place]
            for which, chunk in enumerate(chunks)
            for place, number in enumerate(kept)
        }


def make_runner(
    model: nn.Module, kv: KVCache, adapters: Adapters | None = None, eyes: Eyes | None = None
) -> ModelRunner:
    """The runner that fits a cache."""
    if isinstance(kv, HybridKV):
        return HybridRunner(model, kv, adapters)
    return ModelRunner(model, kv, adapters, eyes)


def _groups(spans: list[Span]) -> Iterator[_Group]:
    """Single tokens behind others as one group, and each longer or first chunk by itself."""
    batch: _Group = []
    begin = 0
    for span in spans:
        if span.num_tokens == 1 and span.start:
            batch.append((begin, span))
        else:
            yield [(begin, span)]
        begin += span.num_tokens
    if batch:
        yield batch
