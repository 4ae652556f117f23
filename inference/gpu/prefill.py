"""Causal attention of packed chunks of several sequences over a paged cache.

A program takes some neighbouring tokens of one sequence with all query heads that share a head of keys,
and reads the keys that they may see, by an online softmax. Chunks behind a cached beginning, whole
prompts, drafts that are to be verified and single tokens are all the same to it. The launch depends on
how many tokens there are in all and on no single length. Sources: Dao 2023, "FlashAttention-2", section
3.1; the blocks of queries over packed sequences are those of vLLM's Triton attention.
"""

import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.online import cells_of, scores_of, take_in
from inference.gpu.tiles import prefill_tile


@triton.jit
def _sequence_of(block, starts, num_sequences, BLOCK_TOKENS_Q: tl.constexpr):
    """Sequence i has the blocks from starts[i] // BLOCK_TOKENS_Q + i on: more than it needs, but known
    without a look at the others. By bisection."""
    low = 0
    high = num_sequences
    while low < high:
        middle = (low + high) // 2
        if tl.load(starts + middle) // BLOCK_TOKENS_Q + middle <= block:
            low = middle + 1
        else:
            high = middle
    return low - 1


# Numbers that change from step to step: nothing may be compiled for each while answers wait.
@triton.jit(do_not_specialize=["num_sequences", "table_stride"])
def _prefill(
    query,
    key_pages,
    value_pages,
    tables,
    starts,
    lengths,
    sinks,
    out,
    num_sequences,
    scale,
    table_stride,
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
    TOKENS_AT_ONCE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
    BLOCK_VALUE: tl.constexpr,
):
    """Grid: (blocks of queries, kv heads). Row r is head r % GROUP of the block's token r // GROUP."""
    block = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = _sequence_of(block, starts, num_sequences, TOKENS_AT_ONCE)
    first = tl.load(starts + sequence)
    num_new = tl.load(starts + sequence + 1) - first
    length = tl.load(lengths + sequence)
    begin = (block - (first // TOKENS_AT_ONCE + sequence)) * TOKENS_AT_ONCE
    if begin >= num_new:
        return

    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, BLOCK_DIM)
    value_dims = tl.arange(0, BLOCK_VALUE)
    new = begin + rows // GROUP
    is_row = (rows < TOKENS_AT_ONCE * GROUP) & (new < num_new)
    heads = kv_head * GROUP + rows % GROUP
    token = (first + new).to(tl.int64)
    q = tl.load(
        query + (token * query_token + heads * query_head)[:, None] + dims[None, :],
        mask=is_row[:, None] & (dims < HEAD_DIM)[None, :],
        other=0.0,
    )
    position = length - num_new + new

    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    if HAS_SINKS:  # as a key before all others, which has no value
        peak = tl.load(sinks + heads, mask=is_row, other=0.0).to(tl.float32)
        total = tl.full([ROWS], 1.0, tl.float32)
    sum_values = tl.zeros([ROWS, BLOCK_VALUE], tl.float32)
    earliest = 0
    if WINDOW > 0:
        earliest = tl.maximum(length - num_new + begin - WINDOW + 1, 0)
        earliest = earliest // BLOCK_KEYS * BLOCK_KEYS
    latest = length - num_new + tl.minimum(begin + TOKENS_AT_ONCE, num_new)
    table = tables + sequence.to(tl.int64) * table_stride
    for at in range(earliest, latest, BLOCK_KEYS):
        tokens = at + tl.arange(0, BLOCK_KEYS)
        is_key = tokens < latest
        cells = cells_of(table, tokens, is_key, kv_head, NUM_KV_HEADS, BLOCK_TOKENS)
        scores = scores_of(q, key_pages, cells, is_key, scale, HEAD_DIM, BLOCK_DIM, SOFTCAP)
        is_seen = is_key[None, :] & (tokens[None, :] <= position[:, None])
        if WINDOW > 0:
            is_seen &= position[:, None] - tokens[None, :] < WINDOW
        scores = tl.where(is_seen, scores, float("-inf"))
        peak, total, sum_values = take_in(
            scores, value_pages, cells, is_key, peak, total, sum_values, VALUE_DIM, BLOCK_VALUE
        )

    attended = sum_values / tl.where(total == 0.0, 1.0, total)[:, None]
    NUM_HEADS: tl.constexpr = NUM_KV_HEADS * GROUP
    tl.store(
        out + ((token * NUM_HEADS + heads) * VALUE_DIM)[:, None] + value_dims[None, :],
        attended.to(out.dtype.element_ty),
        mask=is_row[:, None] & (value_dims < VALUE_DIM)[None, :],
    )


def prefill(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    tables: Tensor,
    starts: Tensor,
    lengths: Tensor,
    *,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """query: (tokens, heads, head_dim), packed -> (tokens, heads, value_dim).

    Sequence i has the tokens from starts[i] up to starts[i + 1], which are the last of its lengths[i]
    tokens; all keys and values are in the pages already. starts: (sequences + 1,) int32, lengths:
    (sequences,) int32; the rest is as `decode` has it. Rows behind starts[-1] get zeros.
    """
    num_tokens, num_heads, head_dim = query.shape
    block_tokens, num_kv_heads, value_dim = value_pages.shape[1:]
    group = num_heads // num_kv_heads
    num_sequences = lengths.shape[0]
    assert query.stride(2) == 1
    assert key_pages.is_contiguous()
    assert value_pages.is_contiguous()
    out = query.new_zeros(num_tokens, num_heads, value_dim)
    if num_sequences == 0:
        return out
    tile, tokens_at_once = prefill_tile(
        group, head_dim, value_dim, query.itemsize, num_tokens, num_sequences
    )
    grid = (num_tokens // tokens_at_once + num_sequences, num_kv_heads)
    _prefill[grid](
        query,
        key_pages,
        value_pages,
        tables,
        starts,
        lengths,
        query if sinks is None else sinks,
        out,
        num_sequences,
        head_dim**-0.5 if scale is None else scale,
        tables.stride(0),
        *query.stride()[:2],
        NUM_KV_HEADS=num_kv_heads,
        GROUP=group,
        HEAD_DIM=head_dim,
        VALUE_DIM=value_dim,
        BLOCK_TOKENS=block_tokens,
        WINDOW=window or 0,
        SOFTCAP=softcap or 0.0,
        HAS_SINKS=sinks is not None,
        TOKENS_AT_ONCE=tokens_at_once,
        ROWS=tile.rows,
        BLOCK_KEYS=tile.keys,
        BLOCK_DIM=tile.block_dim,
        BLOCK_VALUE=tile.block_value,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
    )
    return out
