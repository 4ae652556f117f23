"""Attention of one new token per sequence over a paged cache, each sequence split among programs.

A program reads a part of one sequence's keys and values for all query heads that share them, by an
online softmax; a second launch joins the parts. Where the parts begin is computed on the device from the
lengths, so that the launch depends on no length: a CUDA graph may hold it. Sources: Dao et al. 2023,
"Flash-Decoding"; Milakov and Gimelshein 2018 for the softmax; Kwon et al. 2023 for the pages.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.online import cells_of, scores_of, take_in
from inference.gpu.tiles import decode_tile

MOST_SPLITS = 32
_FEW_SPLITS = 8


# Numbers that change from step to step: nothing may be compiled for each while answers wait.
@triton.jit(do_not_specialize=["table_stride", "num_splits"])
def _decode_part(
    query,
    key_pages,
    value_pages,
    tables,
    lengths,
    parts,
    peaks,
    sums,
    sinks,
    out,
    scale,
    table_stride,
    num_splits,
    query_token,
    query_head,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    IS_WHOLE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
    BLOCK_VALUE: tl.constexpr,
):
    """Grid: (sequences, kv heads, splits). IS_WHOLE: there is one split, and nothing to be joined."""
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(lengths + sequence)
    begin = 0
    if WINDOW > 0:
        begin = tl.maximum(length - WINDOW, 0)
    num_blocks = tl.cdiv(length - begin, BLOCK_KEYS)
    per_split = tl.cdiv(num_blocks, num_splits) * BLOCK_KEYS
    start = begin + split * per_split
    end = tl.minimum(start + per_split, length)

    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, BLOCK_DIM)
    value_dims = tl.arange(0, BLOCK_VALUE)
    heads = kv_head * GROUP + rows
    is_query = (rows < GROUP)[:, None] & (dims < HEAD_DIM)[None, :]
    places = sequence * query_token + heads[:, None] * query_head + dims[None, :]
    q = tl.load(query + places, mask=is_query, other=0.0)

    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sum_values = tl.zeros([ROWS, BLOCK_VALUE], tl.float32)
    table = tables + sequence * table_stride
    for at in range(start, end, BLOCK_KEYS):
        tokens = at + tl.arange(0, BLOCK_KEYS)
        is_key = tokens < end
        cells = cells_of(table, tokens, is_key, kv_head, NUM_KV_HEADS, BLOCK_TOKENS)
        scores = scores_of(q, key_pages, cells, is_key, scale, HEAD_DIM, BLOCK_DIM, SOFTCAP)
        scores = tl.where(is_key[None, :], scores, float("-inf"))
        peak, total, sum_values = take_in(
            scores, value_pages, cells, is_key, peak, total, sum_values, VALUE_DIM, BLOCK_VALUE
        )

    is_row = rows < GROUP
    is_value = is_row[:, None] & (value_dims < VALUE_DIM)[None, :]
    place = sequence * NUM_KV_HEADS * GROUP + heads
    if IS_WHOLE:
        if HAS_SINKS:
            sink = tl.load(sinks + heads, mask=is_row, other=0.0).to(tl.float32)
            new_peak = tl.maximum(peak, sink)
            shrink = tl.exp(peak - new_peak)
            total = total * shrink + tl.exp(sink - new_peak)
            sum_values *= shrink[:, None]
        attended = sum_values / tl.where(total == 0.0, 1.0, total)[:, None]
        target = out + place[:, None] * VALUE_DIM + value_dims[None, :]
        tl.store(target, attended.to(out.dtype.element_ty), mask=is_value)
    else:
        place = place * num_splits + split
        tl.store(peaks + place, peak, mask=is_row)
        tl.store(sums + place, total, mask=is_row)
        target = parts + place[:, None] * VALUE_DIM + value_dims[None, :]
        tl.store(target, sum_values, mask=is_value)


@triton.jit(do_not_specialize=["num_splits"])
def _join_parts(
    parts,
    peaks,
    sums,
    sinks,
    out,
    num_splits,
    NUM_HEADS: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_VALUE: tl.constexpr,
):
    """Grid: (sequences, heads). Parts without a key have the peak -inf and count nothing."""
    head = tl.program_id(1)
    place = (tl.program_id(0).to(tl.int64) * NUM_HEADS + head) * num_splits
    splits = tl.arange(0, SPLITS)
    dims = tl.arange(0, BLOCK_VALUE)
    is_split = splits < num_splits
    of_part = tl.load(peaks + place + splits, mask=is_split, other=float("-inf"))
    totals = tl.load(sums + place + splits, mask=is_split, other=0.0)
    peak = tl.max(of_part, 0)
    if HAS_SINKS:
        peak = tl.maximum(peak, tl.load(sinks + head).to(tl.float32))
    # A row that fills up a batch has no key at all: without this its zeros would be NaN.
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    shares = tl.exp(of_part - peak)
    total = tl.sum(totals * shares, 0)
    if HAS_SINKS:
        total += tl.exp(tl.load(sinks + head).to(tl.float32) - peak)
    values = tl.load(
        parts + (place + splits)[:, None] * VALUE_DIM + dims[None, :],
        mask=is_split[:, None] & (dims < VALUE_DIM)[None, :],
        other=0.0,
    )
    joined = tl.sum(values * shares[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    target = out + (tl.program_id(0).to(tl.int64) * NUM_HEADS + head) * VALUE_DIM
    tl.store(target + dims, joined.to(out.dtype.element_ty), mask=dims < VALUE_DIM)


def decode(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    tables: Tensor,
    lengths: Tensor,
    *,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    num_splits: int = 8,
) -> Tensor:
    """query: (sequences, heads, head_dim), of the last tokens -> (sequences, heads, value_dim).

    pages: contiguous (blocks, block_tokens, kv_heads, dim); tables: (sequences, most blocks) int32;
    lengths: (sequences,) int32, the new token included; 0 for rows that fill up a batch: they get zeros.
    The token sees the last `window` tokens, itself included. `softcap`: scores are
    softcap * tanh(score / softcap). `sinks`: (heads,), logits that take probability and give nothing.
    `scale` is head_dim ** -0.5 unless it is given. `num_splits` is how many programs share a sequence,
    at most MOST_SPLITS.
    """
    num_sequences, num_heads, head_dim = query.shape
    block_tokens, num_kv_heads, value_dim = value_pages.shape[1:]
    group = num_heads // num_kv_heads
    assert 1 <= num_splits <= MOST_SPLITS
    assert query.stride(2) == 1
    assert key_pages.is_contiguous()
    assert value_pages.is_contiguous()
    out = query.new_empty(num_sequences, num_heads, value_dim)
    if num_sequences == 0:
        return out
    is_whole = num_splits == 1
    parts = peaks = sums = out
    if not is_whole:
        shape = (num_sequences, num_heads, num_splits)
        parts = query.new_empty((*shape, value_dim), dtype=torch.float32)
        peaks, sums = query.new_empty((2, *shape), dtype=torch.float32)
    num_programs = num_sequences * num_kv_heads
    tile = decode_tile(group, head_dim, value_dim, query.itemsize, num_programs)
    constants = {"VALUE_DIM": value_dim, "HAS_SINKS": sinks is not None}
    _decode_part[(num_sequences, num_kv_heads, num_splits)](
        query,
        key_pages,
        value_pages,
        tables,
        lengths,
        parts,
        peaks,
        sums,
        query if sinks is None else sinks,
        out,
        head_dim**-0.5 if scale is None else scale,
        tables.stride(0),
        num_splits,
        *query.stride()[:2],
        NUM_KV_HEADS=num_kv_heads,
        GROUP=group,
        HEAD_DIM=head_dim,
        BLOCK_TOKENS=block_tokens,
        WINDOW=window or 0,
        SOFTCAP=softcap or 0.0,
        IS_WHOLE=is_whole,
        ROWS=tile.rows,
        BLOCK_KEYS=tile.keys,
        BLOCK_DIM=tile.block_dim,
        BLOCK_VALUE=tile.block_value,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        **constants,
    )
    if is_whole:
        return out
    _join_parts[(num_sequences, num_heads)](
        parts,
        peaks,
        sums,
        query if sinks is None else sinks,
        out,
        num_splits,
        NUM_HEADS=num_heads,
        SPLITS=_FEW_SPLITS if num_splits <= _FEW_SPLITS else MOST_SPLITS,
        BLOCK_VALUE=tile.block_value,
        **constants,
    )
    return out
