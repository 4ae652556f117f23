"""A linear layer for few rows, with what stands before and behind it: norm, gate and residual.

A step of few sequences reads each weight once and computes next to nothing with it: how long that takes
is the memory's bandwidth, and whatever is launched in between is lost. A program computes some outputs
of all rows, and what it needs of the norm on its way: that is one factor per row, which may as well be
multiplied at the end. Source of the norm: Zhang and Sennrich 2019, "Root mean square layer
normalization"; of the gate: Shazeer 2020, "GLU Variants Improve Transformer".
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.gated import _silu
from inference.gpu.online import _IN_FLOAT32

MOST_ROWS = 8
_LEAST_SIZE = 16  # of each side of a tensor core's product


@dataclass(frozen=True, slots=True)
class Tile:
    """How many outputs and inputs a program holds at once."""

    outputs: int
    inputs: int
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Tensor
    epsilon: float


@triton.jit
def _weights(
    weight, outputs, inputs, IN: tl.constexpr, OUT: tl.constexpr, IS_EVEN: tl.constexpr
):  # fmt: skip
    """(outputs, inputs); with IS_EVEN, blocks fill the matrix."""
    places = weight + outputs.to(tl.int64)[:, None] * IN + inputs[None, :]
    if IS_EVEN:
        found = tl.load(places)
    else:
        found = tl.load(places, mask=(outputs < OUT)[:, None] & (inputs < IN)[None, :], other=0.0)
    return found


@triton.jit
def _with(sums, weights, rows, IS_ONE: tl.constexpr):
    """rows: (inputs, rows). With one row, sums are (outputs, inputs) until the end; else products of
    tensor cores, (outputs, rows)."""
    if IS_ONE:
        sums += weights.to(tl.float32) * tl.trans(rows)
    elif _IN_FLOAT32:
        sums = tl.dot(weights.to(tl.float32), rows, sums, input_precision="ieee")
    else:
        sums = tl.dot(weights, rows, sums, input_precision="ieee")
    return sums


@triton.jit
def _store(
    sums,
    outputs,
    rows,
    is_there,
    residual,
    residual_row,
    out,
    num_out,
    HAS_RESIDUAL: tl.constexpr,
):
    """sums and is_there: (outputs, rows), and the residual with them; out: (rows, num_out)."""
    if HAS_RESIDUAL:
        places = residual + rows[None, :] * residual_row + outputs[:, None]
        sums += tl.load(places, mask=is_there, other=0.0).to(tl.float32)
    places = out + rows[None, :] * num_out + outputs[:, None]
    tl.store(places, sums.to(out.dtype.element_ty), mask=is_there)


# How many rows there are changes from step to step: nothing may be compiled for each while answers wait.
@triton.jit(do_not_specialize=["num_rows", "x_row", "residual_row"])
def _linear(
    x,
    weight,
    scales,
    norm,
    bias,
    residual,
    out,
    epsilon,
    num_rows,
    x_row,
    residual_row,
    IS_ONE: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    HAS_SCALES: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    IS_GATED: tl.constexpr,
    IS_EVEN: tl.constexpr,
    PADDED: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_IN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Grid: (blocks of outputs,). With IS_GATED, the gates' weights and then as many others."""
    outputs = tl.program_id(0) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    rows = tl.arange(0, PADDED)
    WIDTH: tl.constexpr = BLOCK_IN if IS_ONE else PADDED
    sums = tl.zeros([BLOCK_OUT, WIDTH], tl.float32)
    others = tl.zeros([BLOCK_OUT, WIDTH], tl.float32)
    squares = tl.zeros([BLOCK_IN, PADDED], tl.float32)
    for at in tl.range(0, IN, BLOCK_IN, num_stages=STAGES):
        inputs = at + tl.arange(0, BLOCK_IN)
        is_in = inputs < IN
        places = x + rows[None, :] * x_row + inputs[:, None]
        values = tl.load(places, mask=is_in[:, None] & (rows < num_rows)[None, :], other=0.0)
        values = values.to(tl.float32)
        if HAS_NORM:
            squares += values * values
            values *= tl.load(norm + inputs, mask=is_in, other=0.0).to(tl.float32)[:, None]
        if not IS_ONE and not _IN_FLOAT32:
            values = values.to(x.dtype.element_ty)
        w = _weights(weight, outputs, inputs, IN, OUT, IS_EVEN)
        if HAS_SCALES and not IS_ONE:  # of 8 bits
            w = w.to(x.dtype.element_ty)
        sums = _with(sums, w, values, IS_ONE)
        if IS_GATED:
            w = _weights(weight + OUT * IN, outputs, inputs, IN, OUT, IS_EVEN)
            if HAS_SCALES and not IS_ONE:
                w = w.to(x.dtype.element_ty)
            others = _with(others, w, values, IS_ONE)
    if IS_ONE:
        sums = tl.sum(sums, 1)[:, None]
        others = tl.sum(others, 1)[:, None]
    is_out = outputs < OUT
    if HAS_SCALES:
        sums *= tl.load(scales + outputs, mask=is_out, other=0.0)[:, None]
        if IS_GATED:
            others *= tl.load(scales + OUT + outputs, mask=is_out, other=0.0)[:, None]
    if HAS_NORM:
        factors = tl.rsqrt(tl.sum(squares, 0) / IN + epsilon)[None, :]
        sums *= factors
        others *= factors
    if HAS_BIAS:
        sums += tl.load(bias + outputs, mask=is_out, other=0.0).to(tl.float32)[:, None]
        if IS_GATED:
            others += tl.load(bias + OUT + outputs, mask=is_out, other=0.0).to(tl.float32)[:, None]
    if IS_GATED:
        sums = _silu(sums) * others
    is_there = is_out[:, None] & (rows < num_rows)[None, :]
    _store(sums, outputs, rows, is_there, residual, residual_row, out, OUT, HAS_RESIDUAL)


def linear(
    x: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None = None,
    scales: Tensor | None = None,
    norm: Norm | None = None,
    residual: Tensor | None = None,
    is_gated: bool = False,
    tile: Tile | None = None,
) -> Tensor:
    """x: (rows, inputs), at most MOST_ROWS; weight: (outputs, inputs), contiguous -> (rows, outputs).

    `norm` is x's, before; `residual`, (rows, outputs), is added at the end. With `is_gated` the first
    half of the outputs are gates: (rows, outputs / 2) are silu(gate) * other. `scales`, (outputs,)
    float32, are what weights of 8 bits are multiplied by.
    """
    num_rows, num_in = x.shape
    num_out = weight.shape[0] // 2 if is_gated else weight.shape[0]
    assert num_rows <= MOST_ROWS
    assert x.stride(1) == 1
    assert weight.is_contiguous()
    out = x.new_empty(num_rows, num_out)
    if num_rows == 0:
        return out
    tile = tile or tile_of(
        *(num_rows, num_in, num_out, weight.itemsize), is_gated=is_gated, has_norm=norm is not None
    )
    inputs = min(tile.inputs, max(_LEAST_SIZE, triton.next_power_of_2(num_in)))
    _linear[(triton.cdiv(num_out, tile.outputs),)](
        x,
        weight,
        x if scales is None else scales,
        x if norm is None else norm.weight,
        x if bias is None else bias,
        x if residual is None else residual,
        out,
        0.0 if norm is None else norm.epsilon,
        num_rows,
        x.stride(0),
        0 if residual is None else residual.stride(0),
        IS_ONE=num_rows == 1,
        IN=num_in,
        OUT=num_out,
        HAS_SCALES=scales is not None,
        HAS_NORM=norm is not None,
        HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None,
        IS_GATED=is_gated,
        IS_EVEN=num_in % inputs == 0 and num_out % tile.outputs == 0,
        PADDED=1 if num_rows == 1 else _LEAST_SIZE,
        BLOCK_OUT=tile.outputs,
        BLOCK_IN=inputs,
        STAGES=tile.num_stages,
        num_warps=tile.num_warps,
    )
    return out


def tile_of(
    num_rows: int, num_in: int, num_out: int, itemsize: int, *, is_gated: bool, has_norm: bool
) -> Tile:
    """The quickest of some thirty that were timed on an H200 for the layers of models of .6 and 8
    billion parameters: few outputs and long pieces of their inputs, so that much is on its way."""
    if num_rows > 1:
        return Tile(_LEAST_SIZE, 256, 2, 4)
    if itemsize == 1:
        return Tile(8, 512, 2, 4)
    if is_gated:
        return Tile(4, 1024, 4, 1)
    if num_in <= 2048 and num_out > 2048:
        return Tile(2, 1024, 4, 1)
    if num_out <= 2048:
        return Tile(4, 1024, 8, 1)
    return Tile(8, 1024, 4, 1) if has_norm else Tile(8, 512, 4, 3)
