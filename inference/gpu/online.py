"""What both attention kernels do with a block of keys: find it, score it, add it to what was read.

Source of the online softmax: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax";
Kwon et al. 2023 for the pages.
"""

import triton
import triton.language as tl

# The interpreter takes the bits of bfloat16 for whole numbers where it multiplies matrices.
_IN_FLOAT32 = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def _product(a, b):
    """Of two matrices, summed up in float32."""
    if _IN_FLOAT32:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _softcapped(scores, SOFTCAP: tl.constexpr):
    """SOFTCAP * tanh(scores / SOFTCAP), in a form that does not overflow."""
    x = scores / SOFTCAP
    e = tl.exp(-2.0 * tl.abs(x))
    tanh = (1.0 - e) / (1.0 + e)
    return SOFTCAP * tl.where(x < 0, -tanh, tanh)


@triton.jit
def cells_of(
    table, tokens, is_key, kv_head, NUM_KV_HEADS: tl.constexpr, BLOCK_TOKENS: tl.constexpr
):
    """Where the tokens' keys and values of one head lie in the pages, in units of a head's dimension."""
    blocks = tl.load(table + tokens // BLOCK_TOKENS, mask=is_key, other=0)
    # 64 bits: a pool of some GiB has more than 2**31 values.
    slots = blocks.to(tl.int64) * BLOCK_TOKENS + tokens % BLOCK_TOKENS
    return slots * NUM_KV_HEADS + kv_head


@triton.jit
def scores_of(
    q,
    key_pages,
    cells,
    is_key,
    scale,
    HEAD_DIM: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
    SOFTCAP: tl.constexpr,
):
    """(rows, keys): of the queries with the keys that lie in these cells."""
    dims = tl.arange(0, BLOCK_DIM)
    k = tl.load(
        key_pages + cells[None, :] * HEAD_DIM + dims[:, None],
        mask=is_key[None, :] & (dims < HEAD_DIM)[:, None],
        other=0.0,
    )
    if k.dtype.is_fp8():
        k = k.to(q.dtype)
    scores = _product(q, k) * scale
    if SOFTCAP > 0:
        scores = _softcapped(scores, SOFTCAP)
    return scores


@triton.jit
def take_in(
    scores,
    value_pages,
    cells,
    is_key,
    peak,
    total,
    sum_values,
    VALUE_DIM: tl.constexpr,
    BLOCK_VALUE: tl.constexpr,
):
    """One more block of keys; a score of -inf is of a key that the row does not see."""
    dims = tl.arange(0, BLOCK_VALUE)
    v = tl.load(
        value_pages + cells[:, None] * VALUE_DIM + dims[None, :],
        mask=is_key[:, None] & (dims < VALUE_DIM)[None, :],
        other=0.0,
    )
    if v.dtype.is_fp8():
        v = v.to(tl.bfloat16)  # which holds each e4m3 as it is
    new_peak = tl.maximum(peak, tl.max(scores, 1))
    # A row may see nothing of a block before its window begins: -inf - -inf is no number.
    safe_peak = tl.where(new_peak == float("-inf"), 0.0, new_peak)
    shrink = tl.exp(peak - safe_peak)
    weights = tl.exp(scores - safe_peak[:, None])
    total = total * shrink + tl.sum(weights, 1)
    sum_values = sum_values * shrink[:, None] + _product(weights.to(v.dtype), v)
    return new_peak, total, sum_values
