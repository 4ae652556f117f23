"""What stands between the projections of a layer and its attention, in one launch: norms of the heads,
RoPE, and keys and values on their way to their slots of a paged cache.

Norms of heads are Qwen3's and others'; RoPE is that of the halves, of whole heads (Su et al. 2021,
"RoFormer", section 3.4.2). Computed in float32, and rounded once.
"""

import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.few_rows import Norm
from inference.gpu.writing import _kept, _turned


@triton.jit
def _rotated_head(
    row,
    norm,
    angles_cos,
    angles_sin,
    epsilon,
    HEAD_DIM: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HALF: tl.constexpr,
):
    """The two halves of a head."""
    pairs = tl.arange(0, HALF)
    is_pair = pairs < HEAD_DIM // 2
    first = pairs
    second = pairs + HEAD_DIM // 2
    x = tl.load(row + first, mask=is_pair, other=0.0).to(tl.float32)
    y = tl.load(row + second, mask=is_pair, other=0.0).to(tl.float32)
    if HAS_NORM:
        factor = tl.rsqrt((tl.sum(x * x, 0) + tl.sum(y * y, 0)) / HEAD_DIM + epsilon)
        x *= factor * tl.load(norm + first, mask=is_pair, other=0.0).to(tl.float32)
        y *= factor * tl.load(norm + second, mask=is_pair, other=0.0).to(tl.float32)
    return _turned(x, y, angles_cos, angles_sin, first, second, is_pair)


@triton.jit
def _place_heads(
    packed,
    query_norm,
    key_norm,
    cos,
    sin,
    slots,
    key_pages,
    value_pages,
    packed_row,
    angle_row,
    query_epsilon,
    key_epsilon,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HAS_NORMS: tl.constexpr,
    HALF: tl.constexpr,
):
    """Grid: (tokens, heads + kv heads)."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pairs = tl.arange(0, HALF)
    is_pair = pairs < HEAD_DIM // 2
    row = packed + token * packed_row + head * HEAD_DIM
    cos_row = cos + token * angle_row
    sin_row = sin + token * angle_row
    if head < NUM_HEADS:
        x, y = _rotated_head(
            row, query_norm, cos_row, sin_row, query_epsilon, HEAD_DIM, HAS_NORMS, HALF
        )
        tl.store(row + pairs, x.to(packed.dtype.element_ty), mask=is_pair)
        tl.store(row + HEAD_DIM // 2 + pairs, y.to(packed.dtype.element_ty), mask=is_pair)
    else:
        slot = tl.load(slots + token).to(tl.int64)
        if slot >= 0:
            cell = (slot * NUM_KV_HEADS + head - NUM_HEADS) * HEAD_DIM
            x, y = _rotated_head(
                row, key_norm, cos_row, sin_row, key_epsilon, HEAD_DIM, HAS_NORMS, HALF
            )
            page = key_pages + cell
            # As torch has it, where a key is a tensor of its own before it is kept.
            x = x.to(packed.dtype.element_ty)
            y = y.to(packed.dtype.element_ty)
            tl.store(page + pairs, _kept(x, key_pages), mask=is_pair)
            tl.store(page + HEAD_DIM // 2 + pairs, _kept(y, key_pages), mask=is_pair)
            of_value = row + NUM_KV_HEADS * HEAD_DIM
            page = value_pages + cell
            x = tl.load(of_value + pairs, mask=is_pair, other=0.0)
            y = tl.load(of_value + HEAD_DIM // 2 + pairs, mask=is_pair, other=0.0)
            tl.store(page + pairs, _kept(x, value_pages), mask=is_pair)
            tl.store(page + HEAD_DIM // 2 + pairs, _kept(y, value_pages), mask=is_pair)


def place_heads(
    packed: Tensor,
    num_heads: int,
    angles: tuple[Tensor, Tensor],
    slots: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    norms: tuple[Norm, Norm] | None = None,
) -> Tensor:
    """Returns the queries, (tokens, heads, head_dim), which lie where they lay.

    packed: (tokens, (heads + 2 * kv_heads) * head_dim), a token's queries, keys and values, of which the
    queries are changed; angles: cos and sin, (tokens, head_dim) each; slots: (tokens,) int64, -1 for
    nowhere; pages: contiguous (blocks, block_tokens, kv_heads, head_dim); norms: of queries and keys.
    """
    num_kv_heads, head_dim = key_pages.shape[2:]
    cos, sin = angles
    assert packed.shape[1] == (num_heads + 2 * num_kv_heads) * head_dim
    assert head_dim % 2 == 0
    assert all(t.stride(-1) == 1 for t in (packed, cos, sin))
    assert cos.stride(0) == sin.stride(0)
    assert key_pages.is_contiguous()
    assert value_pages.is_contiguous()
    assert value_pages.shape == key_pages.shape
    query: Tensor = packed[:, : num_heads * head_dim].unflatten(1, (num_heads, head_dim))
    if len(packed) == 0:
        return query
    query_norm, key_norm = norms or (Norm(packed, 0.0), Norm(packed, 0.0))
    half = triton.next_power_of_2(head_dim // 2)
    _place_heads[(len(packed), num_heads + num_kv_heads)](
        packed,
        query_norm.weight,
        key_norm.weight,
        cos,
        sin,
        slots,
        key_pages,
        value_pages,
        packed.stride(0),
        cos.stride(0),
        query_norm.epsilon,
        key_norm.epsilon,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        HAS_NORMS=norms is not None,
        HALF=half,
        num_warps=1 if half <= 64 else 2,
    )
    return query
