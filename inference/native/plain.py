"""Linear layers in bfloat16 with the weights as they are: see plain.c."""

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear as torch_linear

from inference.native.kernels import kernels

MOST_ROWS = 64  # of more, oneDNN is as quick, or quicker
_MAX_ERROR = 4e-3  # relative, of a product that is rounded to bfloat16


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x: (..., inputs), weight: (outputs, inputs), bias: (outputs,), all bfloat16 -> (..., outputs).

    Weight and bias are contiguous, the number of inputs is even.
    """
    library = kernels()
    assert library is not None
    rows = x.reshape(-1, x.shape[-1])
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    out = x.new_empty(*x.shape[:-1], weight.shape[0])
    library.plain_linear(
        *(weight.data_ptr(), None if bias is None else bias.data_ptr()),
        *(rows.data_ptr(), rows.stride(0), out.data_ptr()),
        *(len(rows), weight.shape[1], weight.shape[0], torch.get_num_threads()),
    )
    return out


def is_for(num_rows: int) -> bool:
    """Whether so many rows are multiplied more quickly than by oneDNN."""
    return 1 <= num_rows <= MOST_ROWS


@cache
def is_quicker() -> bool:
    """Than oneDNN for some numbers of rows, and as right: with AVX512-BF16 and without AMX."""
    library = kernels()
    if library is None or not library.has_plain_linear():
        return False
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).bfloat16()

    weight, bias = random(70, 270), random(70)
    for num_rows in (1, 2, 9, 33):
        x = random(num_rows, 270)
        exact = torch_linear(x.double(), weight.double(), bias.double())
        error = (linear(x, weight, bias) - exact).norm() / exact.norm()
        if not error <= _MAX_ERROR:
            return False
    return True
