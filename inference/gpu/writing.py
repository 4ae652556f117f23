"""Rotates queries and keys, and writes keys and values to their slots of a paged cache: one launch.

RoPE turns pairs of a head's values by an angle that grows with the position; which values are a pair is
the model's: the halves of the rotated part (Llama), or neighbours (GPT-J). Source: Su et al. 2021,
"RoFormer", section 3.4.2. Mixed precision as in the models: products in float32, results as they came.
"""

import triton
import triton.language as tl
from torch import Tensor

_IS_INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def _rotated(
    row,
    angles_cos,
    angles_sin,
    first,
    second,
    is_in,
):
    """Both values of each pair, turned; `first` and `second` are their places in the row."""
    x = tl.load(row + first, mask=is_in, other=0.0).to(tl.float32)
    y = tl.load(row + second, mask=is_in, other=0.0).to(tl.float32)
    return _turned(x, y, angles_cos, angles_sin, first, second, is_in)


@triton.jit
def _turned(x, y, angles_cos, angles_sin, first, second, is_in):
    """The values of pairs in float32, turned by the angles of their places."""
    cos_x = tl.load(angles_cos + first, mask=is_in, other=0.0).to(tl.float32)
    cos_y = tl.load(angles_cos + second, mask=is_in, other=0.0).to(tl.float32)
    sin_x = tl.load(angles_sin + first, mask=is_in, other=0.0).to(tl.float32)
    sin_y = tl.load(angles_sin + second, mask=is_in, other=0.0).to(tl.float32)
    return x * cos_x - y * sin_x, y * cos_y + x * sin_y


@triton.jit
def _kept(new, pages):
    """As the pages have it; of 8 bits, what is too large is cut off and not made NaN."""
    if pages.dtype.element_ty.is_fp8():
        new = tl.minimum(tl.maximum(new.to(tl.float32), -448.0), 448.0)
        if _IS_INTERPRETED:  # as devices round: the interpreter forgets the carry of 0.97 to 1
            bits = new.to(tl.int32, bitcast=True)
            bits = (bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000
            new = bits.to(tl.float32, bitcast=True)
    return new.to(pages.dtype.element_ty)


@triton.jit
def _rotate_and_write(
    query,
    key,
    value,
    cos,
    sin,
    slots,
    key_pages,
    value_pages,
    query_token,
    query_head,
    key_token,
    key_head,
    value_token,
    value_head,
    angle_token,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    ROTARY_DIM: tl.constexpr,
    IS_INTERLEAVED: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Grid: (tokens, heads + kv heads). ROTARY_DIM 0: nothing is rotated."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pairs = tl.arange(0, HALF)
    is_pair = pairs < ROTARY_DIM // 2
    if IS_INTERLEAVED:
        first = 2 * pairs
        second = 2 * pairs + 1
    else:
        first = pairs
        second = pairs + ROTARY_DIM // 2
    cos_row = cos + token * angle_token
    sin_row = sin + token * angle_token
    if head < NUM_HEADS:
        if ROTARY_DIM > 0:
            row = query + token * query_token + head * query_head
            x, y = _rotated(row, cos_row, sin_row, first, second, is_pair)
            tl.store(row + first, x.to(query.dtype.element_ty), mask=is_pair)
            tl.store(row + second, y.to(query.dtype.element_ty), mask=is_pair)
    else:
        kv_head = head - NUM_HEADS
        slot = tl.load(slots + token).to(tl.int64)
        if slot >= 0:
            places = tl.arange(0, BLOCK_DIM)
            row = key + token * key_token + kv_head * key_head
            page = key_pages + (slot * NUM_KV_HEADS + kv_head) * HEAD_DIM
            is_rest = (places >= ROTARY_DIM) & (places < HEAD_DIM)
            rest = tl.load(row + places, mask=is_rest, other=0.0)
            tl.store(page + places, _kept(rest, key_pages), mask=is_rest)
            if ROTARY_DIM > 0:
                x, y = _rotated(row, cos_row, sin_row, first, second, is_pair)
                tl.store(page + first, _kept(x, key_pages), mask=is_pair)
                tl.store(page + second, _kept(y, key_pages), mask=is_pair)
            is_value = places < VALUE_DIM
            values = tl.load(
                value + token * value_token + kv_head * value_head + places,
                mask=is_value,
                other=0.0,
            )
            target = value_pages + (slot * NUM_KV_HEADS + kv_head) * VALUE_DIM
            tl.store(target + places, _kept(values, value_pages), mask=is_value)


def write(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    slots: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    angles: tuple[Tensor, Tensor] | None = None,
    *,
    is_interleaved: bool = False,
) -> None:
    """Write keys and values to their slots; with `angles` (cos, sin) rotate them and the queries first.

    query: (tokens, heads, head_dim), rotated in place; key: (tokens, kv_heads, head_dim) and value:
    (tokens, kv_heads, value_dim), left as they are; slots: (tokens,) int64, -1 for rows that fill up a
    batch and are written nowhere; pages: contiguous (blocks, block_tokens, kv_heads, dim);
    cos and sin: (tokens, rotary_dim), of which the rest of a head is not rotated.
    """
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads, value_dim = value.shape[1:]
    cos, sin = angles if angles is not None else (slots, slots)
    rotary_dim = cos.shape[1] if angles is not None else 0
    assert all(t.stride(-1) == 1 for t in (query, key, value, cos, sin))
    assert key_pages.is_contiguous()
    assert value_pages.is_contiguous()
    if num_tokens == 0:
        return
    _rotate_and_write[(num_tokens, num_heads + num_kv_heads)](
        query,
        key,
        value,
        cos,
        sin,
        slots,
        key_pages,
        value_pages,
        *query.stride()[:2],
        *key.stride()[:2],
        *value.stride()[:2],
        cos.stride(0) if angles is not None else 0,
        NUM_HEADS=num_heads,
        NUM_KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        VALUE_DIM=value_dim,
        ROTARY_DIM=rotary_dim,
        IS_INTERLEAVED=is_interleaved,
        HALF=triton.next_power_of_2(max(1, rotary_dim // 2)),
        BLOCK_DIM=triton.next_power_of_2(max(head_dim, value_dim)),
    )


def write_only(
    key: Tensor, value: Tensor, slots: Tensor, key_pages: Tensor, value_pages: Tensor
) -> None:
    """`write` of keys that carry RoPE already."""
    write(key[:, :0], key, value, slots, key_pages, value_pages)
