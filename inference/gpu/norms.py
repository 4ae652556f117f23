"""RMS norm of rows, one launch each, with the sum before it where there is one.

Source: Zhang and Sennrich 2019, "Root mean square layer normalization". A sum is rounded as torch rounds
it, for it is what later layers go on with.
"""

import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.few_rows import Norm


@triton.jit
def _norm(
    x,
    added,
    norm,
    total,
    out,
    epsilon,
    x_row,
    added_row,
    SIZE: tl.constexpr,
    HAS_SUM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Grid: (rows,)."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, BLOCK)
    is_in = places < SIZE
    values = tl.load(x + row * x_row + places, mask=is_in, other=0.0)
    if HAS_SUM:
        more = tl.load(added + row * added_row + places, mask=is_in, other=0.0)
        values = (values.to(tl.float32) + more.to(tl.float32)).to(total.dtype.element_ty)
        tl.store(total + row * SIZE + places, values, mask=is_in)
    values = values.to(tl.float32)
    factor = tl.rsqrt(tl.sum(values * values, 0) / SIZE + epsilon)
    weight = tl.load(norm + places, mask=is_in, other=0.0).to(tl.float32)
    tl.store(
        out + row * SIZE + places, (values * factor * weight).to(out.dtype.element_ty), mask=is_in
    )


def normed(x: Tensor, norm: Norm) -> Tensor:
    """x: (rows, size) -> likewise."""
    out, _ = _run(x, None, norm)
    return out


def normed_sum(x: Tensor, added: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """(rows, size) both -> the norm of their sum, and the sum."""
    return _run(x, added, norm)


def _run(x: Tensor, added: Tensor | None, norm: Norm) -> tuple[Tensor, Tensor]:
    num_rows, size = x.shape
    assert x.stride(1) == 1
    assert added is None or (added.stride(1) == 1 and added.shape == x.shape)
    out = x.new_empty(num_rows, size)
    total = out if added is None else x.new_empty(num_rows, size)
    if num_rows:
        block = triton.next_power_of_2(size)
        _norm[(num_rows,)](
            x,
            x if added is None else added,
            norm.weight,
            total,
            out,
            norm.epsilon,
            x.stride(0),
            0 if added is None else added.stride(0),
            SIZE=size,
            HAS_SUM=added is not None,
            BLOCK=block,
            num_warps=4 if block <= 2048 else 8,
        )
    return out, total
