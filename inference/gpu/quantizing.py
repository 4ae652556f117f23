"""Rows in 8 bits of floating point, in one launch: as `inference.fp8.quantize_rows` has it."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.writing import _kept


@triton.jit
def _quantize(
    x, out, scales, x_row, SIZE: tl.constexpr, LARGEST: tl.constexpr, BLOCK: tl.constexpr
):
    """Grid: (rows,)."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, BLOCK)
    is_in = places < SIZE
    values = tl.load(x + row * x_row + places, mask=is_in, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(values), 0) / LARGEST, 1e-12)
    # A device's max drops NaN, and a row of made-up numbers would pass for an answer.
    num_broken = tl.sum((values != values).to(tl.int32), 0)
    scale = tl.where(num_broken > 0, float("nan"), scale)
    tl.store(scales + row, scale)
    tl.store(out + row * SIZE + places, _kept(values / scale, out), mask=is_in)


def quantize_rows(rows: Tensor, padded: int, largest: float) -> tuple[Tensor, Tensor]:
    """(rows, n) -> e4m3 (rows, n), and float32 scales (rows, 1) in memory for a multiple of `padded`."""
    num_rows, size = rows.shape
    assert rows.stride(1) == 1
    out = torch.empty(num_rows, size, dtype=torch.float8_e4m3fn, device=rows.device)
    room = -(-num_rows // padded) * padded
    scales = torch.ones(room, 1, device=rows.device, dtype=torch.float32)[:num_rows]
    if num_rows:
        block = triton.next_power_of_2(size)
        _quantize[(num_rows,)](
            rows,
            out,
            scales,
            rows.stride(0),
            SIZE=size,
            LARGEST=largest,
            BLOCK=block,
            num_warps=4 if block <= 2048 else 8,
        )
    return out, scales
