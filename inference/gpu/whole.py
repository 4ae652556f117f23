"""Linear layers whose weights are whole numbers, as `inference.whole_linear` packs them, on a GPU.

For few rows the weights are read once, as they lie, and become numbers in registers. One row is summed
up by threads that have words of a group each, and may have a norm before and a gate behind, as in
`few_rows`; several rows are products of tensor cores. For many rows `dequantize` spells weights out.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.few_rows import Norm, Tile, _store
from inference.gpu.gated import _silu
from inference.gpu.online import _IN_FLOAT32
from inference.gpu.whole_numbers import _GROUP, _factors, _numbers, _of_groups, _words
from inference.int4 import GROUP
from inference.whole_linear import WholeWeight

MOST_ROWS = 64
"""More get weights that are spelt out. From how many on that is quicker, nobody has timed yet."""
_LEAST_ROWS = 16  # of a tensor core's product
_BLOCK = 1024  # of what is spelt out


@triton.jit
def _one_row(
    x,
    words,
    factors,
    scales,
    norm,
    bias,
    residual,
    out,
    epsilon,
    num_in,
    num_out,
    num_groups,
    BITS: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    IS_GATED: tl.constexpr,
    IS_EVEN: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_GROUPS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Grid: (blocks of outputs,). With IS_GATED, the gates' weights and then as many others."""
    outputs = tl.program_id(0) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    behind = tl.cast(num_out, tl.int64) * num_groups
    sums = tl.zeros([BLOCK_OUT, BLOCK_GROUPS], tl.float32)
    others = tl.zeros([BLOCK_OUT, BLOCK_GROUPS], tl.float32)
    squares = tl.zeros([BLOCK_GROUPS, BITS], tl.float32)
    for at in tl.range(0, num_groups, BLOCK_GROUPS, num_stages=STAGES):
        groups = at + tl.arange(0, BLOCK_GROUPS)
        w = _words(words, outputs, groups, num_out, num_groups, BITS, IS_EVEN)
        part = tl.zeros([BLOCK_OUT, BLOCK_GROUPS, BITS], tl.float32)
        if IS_GATED:
            v = _words(words + behind * BITS, outputs, groups, num_out, num_groups, BITS, IS_EVEN)
            other = tl.zeros([BLOCK_OUT, BLOCK_GROUPS, BITS], tl.float32)
        for place in tl.static_range(_GROUP // BITS):
            inputs = groups[:, None] * _GROUP + place * BITS + tl.arange(0, BITS)[None, :]
            if IS_EVEN:
                values = tl.load(x + inputs).to(tl.float32)
            else:
                values = tl.load(x + inputs, mask=inputs < num_in, other=0.0).to(tl.float32)
            if HAS_NORM:
                squares += values * values
                if IS_EVEN:
                    values *= tl.load(norm + inputs).to(tl.float32)
                else:
                    values *= tl.load(norm + inputs, mask=inputs < num_in, other=0.0).to(tl.float32)
            part += _numbers(w, place * BITS, BITS) * values[None, :, :]
            if IS_GATED:
                other += _numbers(v, place * BITS, BITS) * values[None, :, :]
        sums += _of_groups(part, factors, outputs, groups, num_out, num_groups, BITS, IS_EVEN)
        if IS_GATED:
            own = factors + behind
            others += _of_groups(other, own, outputs, groups, num_out, num_groups, BITS, IS_EVEN)
    is_out = outputs < num_out
    found = tl.sum(sums, 1) * tl.load(scales + outputs, mask=is_out, other=0.0)
    second = tl.zeros([BLOCK_OUT], tl.float32)
    if IS_GATED:
        second = tl.sum(others, 1) * tl.load(scales + num_out + outputs, mask=is_out, other=0.0)
    if HAS_NORM:
        factor = tl.rsqrt(tl.sum(tl.sum(squares, 1), 0) / num_in + epsilon)
        found *= factor
        second *= factor
    if HAS_BIAS:
        found += tl.load(bias + outputs, mask=is_out, other=0.0).to(tl.float32)
        if IS_GATED:
            second += tl.load(bias + num_out + outputs, mask=is_out, other=0.0).to(tl.float32)
    if IS_GATED:
        found = _silu(found) * second
    if HAS_RESIDUAL:
        found += tl.load(residual + outputs, mask=is_out, other=0.0).to(tl.float32)
    tl.store(out + outputs, found.to(out.dtype.element_ty), mask=is_out)


# How many rows there are changes from step to step: nothing may be compiled for each while answers wait.
@triton.jit(do_not_specialize=["num_rows", "x_row", "residual_row"])
def _several_rows(
    x,
    words,
    factors,
    scales,
    bias,
    residual,
    out,
    num_rows,
    x_row,
    residual_row,
    num_in,
    num_out,
    num_groups,
    BITS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    IS_EVEN: tl.constexpr,
    PADDED: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_GROUPS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Grid: (blocks of outputs,). All rows are in one block of PADDED."""
    outputs = tl.program_id(0) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    rows = tl.arange(0, PADDED)
    is_row = rows < num_rows
    shifts = tl.arange(0, _GROUP // BITS) * BITS
    sums = tl.zeros([BLOCK_OUT, PADDED], tl.float32)
    for at in tl.range(0, num_groups, BLOCK_GROUPS, num_stages=STAGES):
        groups = at + tl.arange(0, BLOCK_GROUPS)
        inputs = at * _GROUP + tl.arange(0, BLOCK_GROUPS * _GROUP)
        is_there = is_row[None, :] & (inputs < num_in)[:, None]
        places = x + rows[None, :] * x_row + inputs[:, None]
        if IS_EVEN:
            values = tl.load(places, mask=is_row[None, :], other=0.0)
        else:
            values = tl.load(places, mask=is_there, other=0.0)
        w = _words(words, outputs, groups, num_out, num_groups, BITS, IS_EVEN)
        # (outputs, groups, numbers of a word, BITS), and so one input after the other
        numbers = _numbers(w[:, :, None, :], shifts[None, None, :, None], BITS)
        if BITS == 4:  # whole numbers of 8 bits then: what is multiplied is exact
            own = _factors(factors, outputs, groups, num_out, num_groups, IS_EVEN)
            numbers *= own[:, :, None, None]
        numbers = tl.reshape(numbers, [BLOCK_OUT, BLOCK_GROUPS * _GROUP])
        if _IN_FLOAT32:
            values = values.to(tl.float32)
        sums = tl.dot(numbers.to(values.dtype), values, sums, input_precision="ieee")
    is_out = outputs < num_out
    sums *= tl.load(scales + outputs, mask=is_out, other=0.0)[:, None]
    if HAS_BIAS:
        sums += tl.load(bias + outputs, mask=is_out, other=0.0).to(tl.float32)[:, None]
    is_there = is_out[:, None] & is_row[None, :]
    _store(sums, outputs, rows, is_there, residual, residual_row, out, num_out, HAS_RESIDUAL)


def linear(
    x: Tensor,
    weight: WholeWeight,
    *,
    bias: Tensor | None = None,
    norm: Norm | None = None,
    residual: Tensor | None = None,
    is_gated: bool = False,
    out_dtype: torch.dtype | None = None,
    tile: Tile | None = None,
) -> Tensor:
    """x: (rows, inputs), at most MOST_ROWS -> (rows, outputs), in x's dtype or another one.

    `norm` is x's, before; with `is_gated` the first half of the outputs are gates: (rows, outputs / 2)
    are silu(gate) * other; both are for one row only. `residual`, (rows, outputs), is added at the end.
    """
    num_rows, num_in = x.shape
    num_out, num_groups, bits = weight.words.shape
    num_out = num_out // 2 if is_gated else num_out
    assert num_rows <= MOST_ROWS
    assert x.stride(1) == 1
    out = x.new_empty(num_rows, num_out, dtype=out_dtype)
    if num_rows == 0:
        return out
    tile = tile or tile_of(num_rows, bits)
    groups = min(tile.inputs // GROUP, triton.next_power_of_2(num_groups))
    is_even = num_in % (groups * GROUP) == 0 and num_out % tile.outputs == 0
    tensors = (
        weight.words,
        x if weight.factors is None else weight.factors,
        weight.scales,
    )
    others = (x if bias is None else bias, x if residual is None else residual, out)
    settings = {
        "BITS": bits,
        "HAS_BIAS": bias is not None,
        "HAS_RESIDUAL": residual is not None,
        "IS_EVEN": is_even,
        "BLOCK_OUT": tile.outputs,
        "BLOCK_GROUPS": groups,
        "STAGES": tile.num_stages,
        "num_warps": tile.num_warps,
    }
    grid = (triton.cdiv(num_out, tile.outputs),)
    sizes = (num_in, num_out, num_groups)
    if num_rows == 1:
        norms = (x, 0.0) if norm is None else (norm.weight, norm.epsilon)
        has = {"HAS_NORM": norm is not None, "IS_GATED": is_gated}
        _one_row[grid](x, *tensors, norms[0], *others, norms[1], *sizes, **has, **settings)
        return out
    assert norm is None
    assert not is_gated
    strides = (x.stride(0), 0 if residual is None else residual.stride(0))
    _several_rows[grid](
        x,
        *tensors,
        *others,
        num_rows,
        *strides,
        *sizes,
        PADDED=max(_LEAST_ROWS, triton.next_power_of_2(num_rows)),
        **settings,
    )
    return out


def tile_of(num_rows: int, bits: int) -> Tile:
    """About as much on its way as in `few_rows`, whose tiles were timed. These were not."""
    if num_rows == 1:
        return Tile(8, 1024 if bits == 4 else 512, 2, 4)
    if num_rows <= 16:
        return Tile(16, 256, 2, 4)
    return Tile(16, 128, 2, 4) if num_rows <= 32 else Tile(32, 128, 4, 3)


@triton.jit
def _dequantize(
    words,
    factors,
    scales,
    out,
    num_in,
    num_groups,
    BITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Grid: (outputs, blocks of inputs)."""
    row = tl.program_id(0).to(tl.int64)
    inputs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_in = inputs < num_in
    groups = row * num_groups + inputs // _GROUP
    within = inputs % _GROUP
    w = tl.load(words + groups * BITS + within % BITS, mask=is_in, other=0)
    numbers = (w >> (within // BITS * BITS)) & ((1 << BITS) - 1)
    values = (numbers - (1 << (BITS - 1))).to(tl.float32)
    if BITS == 4:
        values *= tl.load(factors + groups, mask=is_in, other=0).to(tl.float32)
    values *= tl.load(scales + row)
    tl.store(out + row * num_in + inputs, values.to(out.dtype.element_ty), mask=is_in)


def dequantize(weight: WholeWeight, outputs: slice, dtype: torch.dtype) -> Tensor:
    """What some of the outputs' weights stand for: (outputs, inputs)."""
    words, scales = weight.words[outputs], weight.scales[outputs]
    factors = scales if weight.factors is None else weight.factors[outputs]
    num_out, num_groups, bits = words.shape
    out = scales.new_empty(num_out, weight.num_inputs, dtype=dtype)
    if num_out:
        grid = (num_out, triton.cdiv(weight.num_inputs, _BLOCK))
        _dequantize[grid](
            words, factors, scales, out, weight.num_inputs, num_groups, BITS=bits, BLOCK=_BLOCK
        )
    return out
