"""A step's attention by the kernels: keys and values go to their slots, and all tokens attend at once.

What the kernels have to be told of a step is the same in each of its layers, and made once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from inference.block_pool import BLOCK_TOKENS
from inference.gpu.decode import MOST_SPLITS, decode
from inference.gpu.prefill import prefill
from inference.gpu.writing import write_only
from inference.paged_kv import PagedKV
from inference.spans import Span

_SPLITS_PER_LAUNCH = 256  # programs that fill a large GPU, where there are few sequences
_LEAST_KEYS = 128  # of a split: fewer are not worth a second launch's work


@dataclass(frozen=True, slots=True)
class PagedStep:
    """Where the tokens of a step are: see `prefill` for the tensors, all on the model's device."""

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


def attend(
    step: PagedStep,
    pages: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """query: (tokens, heads, head_dim), key and value: (tokens, kv_heads, dim), of a step's packed
    tokens in order -> (tokens, heads, value_dim). Keys carry RoPE already; `pages` are the layer's."""
    write_only(_dense(key), _dense(value), step.slots, *pages)
    query = _dense(query)
    if not step.is_decode:
        return prefill(
            *(query, *pages, step.tables, step.starts, step.lengths),
            scale=scale,
            window=window,
            softcap=softcap,
            sinks=sinks,
        )
    return decode(
        *(query, *pages, step.tables, step.lengths),
        scale=scale,
        window=window,
        softcap=softcap,
        sinks=sinks,
        num_splits=_num_splits(query.shape[0] * pages[0].shape[2], step.tables.shape[1]),
    )


def _num_splits(num_programs: int, num_blocks: int) -> int:
    """Of each of so many sequences' heads, by the width of the tables: lengths are the device's."""
    to_fill = _SPLITS_PER_LAUNCH // max(1, num_programs)
    return max(1, min(to_fill, num_blocks * BLOCK_TOKENS // _LEAST_KEYS, MOST_SPLITS))


def _dense(rows: Tensor) -> Tensor:
    """The kernels step over tokens and heads as they lie, but read a head as a whole."""
    return rows if rows.stride(-1) == 1 else rows.contiguous()
