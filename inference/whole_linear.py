"""Linear layers whose weights are whole numbers of 4 or 8 bits and whose inputs stay as they are: for
GPUs.

A step of few tokens takes as long as the weights take to be read, so that fewer bits are time as well
as memory; products stay bfloat16's, which any GPU has. Few rows are multiplied by a kernel that never
writes the weights out (`gpu/whole.py`); for more, a piece of the weights at a time becomes what it
stands for, and is multiplied as ever. The numbers are the processor's layers': `int4`, `int8_linear`.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from inference import int4
from inference.int4 import GROUP
from inference.int8_linear import Int8Linear, joined_bias, whole_rows
from inference.out_of_memory import is_fault

_PIECE_VALUES = 2**25  # made at a time for many rows: 64 MiB in bfloat16
_PIECE_OUTPUTS = 128  # a multiple of so many: rows of results begin where products like it
_QUANTIZED_VALUES = 2**24  # at a time: in float32, and several of them
_TRIED_ROWS = (1, 3, 20, 40, 200)
# Inputs, outputs and whether there is a bias: some fill no block; others do, as those of most layers,
# for which the same kernels need not be compiled again then.
_TRIED = ((270, 70, True), (1024, 64, False))
_MAX_ERROR = 0.02  # relative, of the worst row in bfloat16; sound ones have .003


class WholeWeight(NamedTuple):
    """`words`: int32 (outputs, groups, bits), a group being 32 inputs, of which word j has those from j
    on, each `bits`-th, the first in its lowest bits, moved up to be positive. `factors`: uint8 (outputs,
    groups), with 4 bits only. `scales`: float32 (outputs,)."""

    words: Tensor
    factors: Tensor | None
    scales: Tensor
    num_inputs: int

    @property
    def bits(self) -> int:
        return self.words.shape[2]


_Make = Callable[[WholeWeight, slice, torch.dtype], Tensor]


class WholeLinear(Int8Linear):
    """One or several linear layers that read the same input, as one product."""

    def __init__(
        self,
        linears: Sequence[nn.Linear],
        out_dtype: torch.dtype | None = None,
        *,
        bits: int,
        at: torch.device | None = None,
    ) -> None:
        """`at` is where weights are made whole, piece by piece; they come back to where they were."""
        super().__init__(linears, out_dtype)
        self.bits = bits
        rows_at_once = max(1, _QUANTIZED_VALUES // self.in_features)
        pieces = [
            [part.to(own.device) for part in _packed(piece.to(at or own.device), bits)]
            for own in (linear.weight.detach() for linear in linears)
            for piece in torch.split(own, rows_at_once)
        ]
        words, scales, *factors = (torch.cat(parts) for parts in zip(*pieces, strict=True))
        self.register_buffer("words", words)
        self.register_buffer("scales", scales)
        self.register_buffer("factors", factors[0] if factors else None)
        self.register_buffer("bias", joined_bias(linears))

    @property
    def num_bytes(self) -> int:
        return 0  # all of it is in buffers, which are counted as such

    @property
    def weight(self) -> WholeWeight:
        """Where it lies now: a sleep moves it."""
        words, factors, scales = self.words, self.factors, self.scales
        assert isinstance(words, Tensor)
        assert isinstance(factors, Tensor | None)
        assert isinstance(scales, Tensor)
        return WholeWeight(words, factors, scales, self.in_features)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features)
        flat = flat if flat.stride(-1) == 1 else flat.contiguous()
        kernels, dtype, bias = _kernels_for(flat), self.out_dtype or x.dtype, self.bias
        assert isinstance(bias, Tensor | None)
        if kernels is not None and len(flat) <= kernels.MOST_ROWS:
            out: Tensor = kernels.linear(flat, self.weight, bias=bias, out_dtype=dtype)
        elif kernels is not None and self.out_dtype == torch.float32:
            # Logits are not rounded by how many rows there are.
            few = torch.split(flat, kernels.MOST_ROWS)
            out = torch.cat(
                [kernels.linear(rows, self.weight, bias=bias, out_dtype=dtype) for rows in few]
            )
        else:
            out = _product(flat, self.weight, kernels.dequantize if kernels else dequantize)
            out = out.to(dtype) if bias is None else out.to(dtype) + bias
        return out.view(*x.shape[:-1], self.out_features)


def dequantize(weight: WholeWeight, outputs: slice, dtype: torch.dtype) -> Tensor:
    """What some of the outputs' weights stand for: (outputs, inputs)."""
    bits = weight.bits
    shifts = torch.arange(0, 32, bits, dtype=torch.int32, device=weight.words.device)
    numbers = (weight.words[outputs, :, None] >> shifts[:, None]) & (2**bits - 1)
    numbers = numbers.flatten(2) - 2 ** (bits - 1)  # (outputs, groups, 32)
    if weight.factors is not None:
        numbers *= weight.factors[outputs, :, None]
    values: Tensor = numbers.flatten(1)[:, : weight.num_inputs] * weight.scales[outputs, None]
    return values.to(dtype)


@cache
def problem_on(device: torch.device, bits: int) -> str:
    """Why a device's products of this kind are not used; empty where they are right: those of what the
    weights stand for, how much of them is lost being another matter."""
    if device.type == "cuda" and not _has_triton():
        return "there is no triton here"
    try:
        worst = max(_worst_error(device, bits, *size) for size in _TRIED)
    except Exception as error:  # no compiler, no room in a program
        if is_fault(error):
            raise
        return f"there are none here ({type(error).__name__}: {error})"
    return f"they are wrong by {worst:.3f}" if worst > _MAX_ERROR else ""


@torch.no_grad()
def _worst_error(
    device: torch.device, bits: int, num_in: int, num_out: int, has_bias: bool
) -> float:
    """Relative, of any row."""
    generator = torch.Generator().manual_seed(1)
    linear = nn.Linear(num_in, num_out, bias=has_bias)
    linear.weight.copy_(torch.randn(num_out, num_in, generator=generator))
    linear.weight[0] = 1.0
    x = torch.randn(max(_TRIED_ROWS), num_in, generator=generator).to(torch.bfloat16)
    x[0] = 1.0
    layer = WholeLinear([linear], bits=bits)
    expected = x.float() @ dequantize(layer.weight, slice(None), torch.float32).t()
    expected += linear.bias if has_bias else 0
    layer.to(device)
    errors = [torch.zeros(1)]
    for num_rows in _TRIED_ROWS:
        found = layer(x[:num_rows].to(device)).float().cpu()
        error = (found - expected[:num_rows]).norm(dim=-1)
        errors.append(error / expected[:num_rows].norm(dim=-1))
    return float(torch.cat(errors).nan_to_num(torch.inf).max())


def _packed(weight: Tensor, bits: int) -> list[Tensor]:
    """weight: (outputs, inputs) -> words, scales and, with 4 bits, factors."""
    if bits == 4:
        numbers, factors, scales = int4.quantize(weight)
        rest = [factors.to(torch.uint8)]
    else:
        numbers, scales = whole_rows(weight)
        rest = []
    half = 2 ** (bits - 1)
    positive = (numbers.to(torch.int16) + half).to(torch.uint8)
    positive = pad(positive, (0, -weight.shape[1] % GROUP), value=half)
    # (outputs, groups, bits, numbers of a word)
    of_words = positive.view(len(weight), -1, GROUP // bits, bits).transpose(2, 3)
    if bits == 4:
        of_words = of_words[..., 0::2] | of_words[..., 1::2] << 4
    return [of_words.contiguous().view(torch.int32).squeeze(-1), scales, *rest]


def _product(x: Tensor, weight: WholeWeight, make: _Make) -> Tensor:
    """x: (rows, inputs) -> (rows, outputs). `make` spells weights out, as `dequantize` does."""
    num_outputs = len(weight.scales)
    out = x.new_empty(len(x), num_outputs)
    step = max(1, _PIECE_VALUES // weight.num_inputs // _PIECE_OUTPUTS) * _PIECE_OUTPUTS
    for start in range(0, num_outputs, step):
        piece = slice(start, start + step)
        torch.mm(x, make(weight, piece, x.dtype).t(), out=out[:, piece])
    return out


def _kernels_for(x: Tensor) -> Any:
    """Our kernels for GPUs, where these rows are on one and triton is there."""
    if not x.is_cuda or not _has_triton():
        return None
    from inference.gpu import whole

    return whole


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
