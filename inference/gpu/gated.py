"""The gate of a feed-forward network: activation(gate) * up, in one pass over both.

Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
"""

from typing import Literal

import triton
import triton.language as tl
from torch import Tensor

Activation = Literal["silu", "gelu_tanh"]
_BLOCK = 1024
_GELU: tl.constexpr = tl.constexpr(0.7978845608028654)  # sqrt(2 / pi)


@triton.jit
def _sigmoid(x):
    small = tl.exp(-tl.abs(x))  # of what is never positive: no overflow
    return tl.where(x < 0, small, 1.0) / (1.0 + small)


@triton.jit
def _silu(x):
    return x * _sigmoid(x)


@triton.jit
def _gate(gate_up, out, row_stride, SIZE: tl.constexpr, IS_SILU: tl.constexpr, BLOCK: tl.constexpr):
    """Grid: (rows, blocks of SIZE)."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_in = places < SIZE
    gate = tl.load(gate_up + row * row_stride + places, mask=is_in, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * row_stride + SIZE + places, mask=is_in, other=0.0)
    if IS_SILU:
        inner = gate
    else:  # (1 + tanh(x)) / 2 is sigmoid(2 x)
        inner = 2.0 * _GELU * (gate + 0.044715 * gate * gate * gate)
    activated = gate * _sigmoid(inner)
    # Rounded where torch rounds it: the activation is a tensor of its own there.
    product = activated.to(up.dtype).to(tl.float32) * up.to(tl.float32)
    tl.store(out + row * SIZE + places, product.to(out.dtype.element_ty), mask=is_in)


def gate(gate_up: Tensor, activation: Activation = "silu") -> Tensor:
    """(rows, 2 * size), the gates in front -> (rows, size)."""
    num_rows, size = gate_up.shape[0], gate_up.shape[1] // 2
    assert gate_up.stride(1) == 1
    out = gate_up.new_empty(num_rows, size)
    if num_rows:
        grid = (num_rows, triton.cdiv(size, _BLOCK))
        _gate[grid](
            gate_up, out, gate_up.stride(0), SIZE=size, IS_SILU=activation == "silu", BLOCK=_BLOCK
        )
    return out
