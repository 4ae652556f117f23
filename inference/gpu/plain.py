"""`inference.gpu.attention` in plain operations, for steps that only decode: where there are no kernels.

Reads each table as a whole, however short the sequence, and copies what it reads; but its shapes depend
on no length, so that a CUDA graph may hold it.
"""

import torch
from torch import Tensor

from inference.block_pool import BLOCK_TOKENS
from inference.fp8 import LARGEST
from inference.gpu.paged_step import PagedStep
from inference.paged_kv import movable


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
    """query: (sequences, heads, head_dim), key and value: (sequences, kv_heads, dim) ->
    (sequences, heads, value_dim)."""
    assert step.is_decode
    for new, its_pages in zip((key, value), pages, strict=True):
        _write(new, step.slots, its_pages)
    keys, values = (_read(its_pages, step.tables) for its_pages in pages)
    num_sequences, num_heads, head_dim = query.shape
    grouped = query.unflatten(1, (keys.shape[2], -1)).to(
        torch.promote_types(query.dtype, torch.float32)
    )
    scale = head_dim**-0.5 if scale is None else scale
    scores = torch.einsum("skgd,stkd->skgt", grouped * scale, keys.to(grouped.dtype))
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    is_seen = _seen(step.lengths, keys.shape[1], window)
    scores = scores.masked_fill(is_seen.logical_not()[:, None, None], float("-inf"))
    if sinks is not None:  # a logit more per head, which takes probability and gives no value
        column = (
            sinks.to(scores.dtype).view(1, *scores.shape[1:3], 1).expand(num_sequences, -1, -1, 1)
        )
        probs = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    else:
        probs = scores.softmax(-1)
    # What nobody has written yet may be no number, and zero times that is none.
    values = torch.where(is_seen[:, :, None, None], values.to(probs.dtype), 0)
    attended = torch.einsum("skgt,stkd->skgd", probs, values)
    return attended.reshape(num_sequences, num_heads, -1).to(query.dtype)


def _write(new: Tensor, slots: Tensor, pages: Tensor) -> None:
    """Rows that fill up a batch write what is there."""
    flat = pages.flatten(0, 1)
    if pages.dtype != new.dtype:
        new = movable(new.clamp(-LARGEST, LARGEST).to(pages.dtype))
        flat = movable(flat)
    safe = slots.clamp_min(0)
    is_real = (slots >= 0)[:, None, None]
    flat.index_copy_(0, safe, torch.where(is_real, new, flat.index_select(0, safe)))


def _read(pages: Tensor, tables: Tensor) -> Tensor:
    """(sequences, blocks * BLOCK_TOKENS, kv_heads, dim)"""
    rows = movable(pages).index_select(0, tables.flatten()).view(pages.dtype)
    return rows.view(len(tables), tables.shape[1] * BLOCK_TOKENS, *pages.shape[2:])


def _seen(lengths: Tensor, num_keys: int, window: int | None) -> Tensor:
    """(sequences, keys). One key is seen by rows without any, or they would be NaN."""
    places = torch.arange(num_keys, device=lengths.device)[None, :]
    ends = lengths.clamp_min(1)[:, None]
    is_seen = places < ends
    return is_seen if window is None else is_seen & (places >= ends - window)
