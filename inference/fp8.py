"""Linear layers in 8 bits of floating point: half of bfloat16's memory, and twice its products.

Weights have one scale per output channel, activations one per token, measured as they come, so that no
request disturbs its neighbours. Both are e4m3: four bits of exponent, three of mantissa, 448 at most.
torch multiplies them (`_scaled_mm`, private, so it is tried before it is used): on GPUs from compute
capability 8.9 on, and, slowly, on processors. Micikevicius et al. 2022, "FP8 formats for deep learning".
"""

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from inference.int8_linear import Int8Linear, joined_bias, joined_weight
from inference.out_of_memory import is_fault

logger = logging.getLogger(__name__)
LARGEST = 448.0  # of e4m3; what is larger becomes NaN, so it is cut off
_MULTIPLE = 16  # of inputs and outputs: what the kernels want
_PADDED_ROWS = (
    256  # of a scale's memory: kernels for Hopper read it in tiles (pytorch issue 133334)
)
_MAX_ERROR = 0.08  # relative, of the worst row of a random product; sound ones have .051
_TRIED_ROWS = (1, 3, 8, 40, 300)


class Fp8Linear(Int8Linear):
    """One or several linear layers that read the same input, as one product."""

    def __init__(self, linears: Sequence[nn.Linear], out_dtype: torch.dtype | None = None) -> None:
        super().__init__(linears, out_dtype)
        weight, scales = quantize_rows(joined_weight(linears))
        self.register_buffer("weight", weight)  # (outputs, inputs); buffers go to the device
        self.register_buffer("scales", scales.t().contiguous())  # (1, outputs)
        self.register_buffer("bias", joined_bias(linears))

    @property
    def num_bytes(self) -> int:
        return 0  # all of it is in buffers, which are counted as such

    def forward(self, x: Tensor) -> Tensor:
        weight, of_weight, bias = self.weight, self.scales, self.bias
        assert isinstance(weight, Tensor)
        assert isinstance(of_weight, Tensor)
        flat = x.reshape(-1, self.in_features)
        flat = flat if flat.stride(-1) == 1 else flat.contiguous()
        kernels = _kernels_for(flat)
        if kernels is not None and len(flat) == 1:
            # All that counts is how fast the weights are read; the row stays as exact as it is.
            one: Tensor = kernels.few_rows.linear(flat, weight, scales=of_weight, bias=bias)
            return one.to(self.out_dtype or x.dtype).view(*x.shape[:-1], self.out_features)
        if kernels is not None:
            rows, scales = kernels.quantizing.quantize_rows(flat, _PADDED_ROWS, LARGEST)
        else:
            rows, scales = quantize_rows(flat)
        product: Tensor = torch._scaled_mm(
            rows,
            weight.t(),
            scale_a=scales,
            scale_b=of_weight,
            out_dtype=torch.bfloat16,  # the only one that all kernels with scales by rows give
            use_fast_accum=True,
        )
        product = product.to(self.out_dtype or x.dtype)
        if isinstance(bias, Tensor):
            product = product + bias
        return product.view(*x.shape[:-1], self.out_features)


def _kernels_for(x: Tensor) -> Any:
    """The package of our kernels for GPUs, where these rows are on one and triton is there."""
    if not x.is_cuda:
        return None
    try:
        import inference.gpu.few_rows
        import inference.gpu.quantizing
    except ImportError:
        return None
    return inference.gpu


def fits(linears: Sequence[nn.Linear]) -> bool:
    """Whether the kernels know these sizes."""
    return not any(one.in_features % _MULTIPLE or one.out_features % _MULTIPLE for one in linears)


def quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, n) -> e4m3 (rows, n), and float32 scales (rows, 1): what they are to be multiplied by."""
    largest = rows.abs().amax(-1, keepdim=True).float()
    num_rows = len(rows)
    padded = -(-num_rows // _PADDED_ROWS) * _PADDED_ROWS
    scales = torch.ones(padded, 1, device=rows.device, dtype=torch.float32)[:num_rows]
    scales.copy_(largest.div_(LARGEST).clamp_min_(1e-12))
    return (rows.float() / scales).clamp_(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scales


@cache
def problem_on(device: torch.device) -> str:
    """Why a device's products of this kind are not used; empty where they are right."""
    generator = torch.Generator().manual_seed(1)
    linear = nn.Linear(272, 80)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(80, 272, generator=generator))
        linear.weight[0] = 1.0
        x = torch.randn(max(_TRIED_ROWS), 272, generator=generator)
        x[0] = 1.0
        expected = linear(x)
        layer = Fp8Linear([linear], torch.float32).to(device)
        worst = 0.0
        try:
            for num_rows in _TRIED_ROWS:
                found = layer(x[:num_rows].to(device, torch.bfloat16)).cpu()
                error = (found - expected[:num_rows]).norm(dim=-1)
                relative = error / expected[:num_rows].norm(dim=-1)
                worst = max(worst, float(relative.max().nan_to_num(torch.inf)))
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            if is_fault(error):
                raise
            return f"there are none here ({error})"
    return f"they are wrong by {worst:.3f}" if worst > _MAX_ERROR else ""
