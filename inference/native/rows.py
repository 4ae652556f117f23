"""Operations on rows by our own kernels: see rows.c. Each raises AssertionError where there are none."""

import torch
from torch import Tensor

from inference.native.kernels import TYPES, kernels


def is_fit(x: Tensor) -> bool:
    """Whether there are kernels for such rows."""
    return x.is_cpu and x.dtype in TYPES


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x: (..., width), weight: (width,) of the same dtype -> (..., width)."""
    library = kernels()
    assert library is not None
    x = x.contiguous()
    out = torch.empty_like(x)
    width = x.shape[-1]
    library.rms_norm(
        *(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.numel() // width, width),
        *(epsilon, TYPES[x.dtype], torch.get_num_threads()),
    )
    return out


def silu_mul(x: Tensor) -> Tensor:
    """x: (..., 2 * width), gates in front -> (..., width)."""
    library = kernels()
    assert library is not None
    x = x.contiguous()
    width = x.shape[-1] // 2
    out = x.new_empty(*x.shape[:-1], width)
    num_rows = x.numel() // (2 * width)
    library.silu_mul(
        *(x.data_ptr(), out.data_ptr(), num_rows, width),
        *(TYPES[x.dtype], torch.get_num_threads()),
    )
    return out


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """x: (1, heads, tokens, dim), cosines and sines: (1, tokens, dim) -> like x; RoPE by halves."""
    library = kernels()
    assert library is not None
    _, num_heads, num_tokens, width = x.shape
    out = x.new_empty(1, num_tokens, num_heads, width)
    library.rotate(
        *(x.data_ptr(), x.stride(1), x.stride(2), cosines.data_ptr(), sines.data_ptr()),
        *(out.data_ptr(), num_heads, num_tokens, width, TYPES[x.dtype], torch.get_num_threads()),
    )
    return out.transpose(1, 2)


def largest(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest value of each row and its first place; NaN where there is one.

    rows: (rows, width) -> float32 (rows,), int64 (rows,).
    """
    library = kernels()
    is_here = rows.device.type == "cpu" and rows.dtype == torch.float32
    if library is None or not is_here or not rows.numel():
        values, places = rows.max(dim=-1)
        return values.float(), places
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    values, places = torch.empty(len(rows)), torch.empty(len(rows), dtype=torch.int64)
    library.largest(
        *(rows.data_ptr(), *rows.shape, rows.stride(0)),
        *(values.data_ptr(), places.data_ptr(), torch.get_num_threads()),
    )
    return values, places
