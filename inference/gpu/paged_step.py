"""Where the tokens of a step are in a paged cache. Knows no kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from inference.paged_kv import PagedKV
from inference.spans import Span


@dataclass(frozen=True, slots=True)
class PagedStep:
    """Tensors on the model's device, made once for all layers of a step.

    `slots`: (tokens,) int64, where each new key and value goes, -1 for nowhere; `tables`: (sequences,
    most blocks) int32; `starts`: (sequences + 1,) int32, where each sequence's new tokens begin;
    `lengths`: (sequences,) int32, those included.
    """

    slots: Tensor
    tables: Tensor
    starts: Tensor
    lengths: Tensor
    is_decode: bool

    @classmethod
    def of(cls, kv: PagedKV, spans: Sequence[Span], device: torch.device) -> "PagedStep":
        ids = [span.sequence_id for span in spans]
        ends = [span.start + span.num_tokens for span in spans]
        slots = [
            kv.slot_mapping(s.sequence_id, s.start, e) for s, e in zip(spans, ends, strict=True)
        ]
        starts = [0, *accumulate(span.num_tokens for span in spans)]
        return cls(
            torch.cat(slots).to(device),
            kv.block_tables(ids).to(device),
            torch.tensor(starts, dtype=torch.int32, device=device),
            torch.tensor(ends, dtype=torch.int32, device=device),
            all(span.num_tokens == 1 for span in spans),
        )
