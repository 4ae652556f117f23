"""Operations on rows on a GPU, one launch each: as `inference.native.rows` has them for processors."""

import triton
import triton.language as tl
from torch import Tensor, bfloat16, float16, float32
from torch.nn import functional

from inference.gpu.gated import gate
from inference.gpu.writing import _rotated

_TYPES = (float32, bfloat16, float16)


def is_fit(x: Tensor) -> bool:
    """Whether these operations are for such rows; the interpreter's are anywhere."""
    is_there = x.is_cuda or not isinstance(_rotate, triton.JITFunction)
    return is_there and x.dtype in _TYPES


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x: (..., width), weight: (width,) of the same dtype -> (..., width)."""
    normed: Tensor = functional.rms_norm(x, weight.shape, weight, epsilon)
    return normed


def silu_mul(x: Tensor) -> Tensor:
    """x: (..., 2 * width), gates in front -> (..., width)."""
    gated: Tensor = gate(x.flatten(0, -2)).unflatten(0, x.shape[:-1])
    return gated


@triton.jit
def _rotate(
    x,
    cos,
    sin,
    out,
    x_token,
    x_head,
    angle_token,
    NUM_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF: tl.constexpr,
):
    """Grid: (tokens, heads)."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pairs = tl.arange(0, HALF)
    is_pair = pairs < DIM // 2
    second = pairs + DIM // 2
    angles = token * angle_token
    row = x + token * x_token + head * x_head
    left, right = _rotated(row, cos + angles, sin + angles, pairs, second, is_pair)
    target = out + (token * NUM_HEADS + head) * DIM
    tl.store(target + pairs, left.to(out.dtype.element_ty), mask=is_pair)
    tl.store(target + second, right.to(out.dtype.element_ty), mask=is_pair)


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """x: (1, heads, tokens, dim), cosines and sines: (1, tokens, dim) -> like x; RoPE by halves."""
    _, num_heads, num_tokens, dim = x.shape
    out = x.new_empty(1, num_tokens, num_heads, dim)
    if num_tokens:
        _rotate[(num_tokens, num_heads)](
            x,
            cosines,
            sines,
            out,
            x.stride(2),
            x.stride(1),
            cosines.stride(1),
            NUM_HEADS=num_heads,
            DIM=dim,
            HALF=triton.next_power_of_2(dim // 2),
        )
    return out.transpose(1, 2)
