"""Linear layers in 8 bits: what all kinds have in common, and the kind that oneDNN multiplies.

Weights have one scale per output channel, activations one per token, measured as they come (dynamic
quantization, as in LLM.int8(), Dettmers et al. 2022, without its outlier path). A scale per token means
that no request disturbs its neighbours in the batch; with one for the whole batch, a single outlier cost
the others 37 % (cpu.md). The sums are whole numbers, so the same row gives the same result in any batch.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Activations are unsigned: processors without AMX multiply u8 by s8 only. Their size on each side of the
# zero is below 127 (or 63) by more than bfloat16 may round a scale down.
_ZERO, _LARGEST = 128, 126.5
_NARROW_ZERO, _NARROW_LARGEST = 64, 62.75
_BLOCK_VALUES = 65_536  # quantized at a time: what is read twice is then still in the cache


class Int8Linear(nn.Module):
    """One or several linear layers that read the same input, as one product.

    forward: (..., in_features) -> (..., sum of the layers' out_features), in the input's dtype unless
    `out_dtype` says which.
    """

    def __init__(self, linears: Sequence[nn.Linear], out_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.in_features = linears[0].in_features
        self.out_features = sum(linear.out_features for linear in linears)
        self.out_dtype = out_dtype

    @property
    def num_bytes(self) -> int:
        """What the weights take in memory."""
        raise NotImplementedError


class OneDnnLinear(Int8Linear):
    """For processors with VNNI: torch quantizes the activations, and oneDNN multiplies."""

    zero, largest = _ZERO, _LARGEST

    def __init__(self, linears: Sequence[nn.Linear], out_dtype: torch.dtype | None = None) -> None:
        super().__init__(linears, out_dtype)
        whole, self.scales = joined_whole(linears)
        self.packed = torch.ops.onednn.qlinear_prepack(whole, None)
        self.zeros = torch.zeros(self.out_features, dtype=torch.int32)
        self.bias = joined_bias(linears)

    @property
    def num_bytes(self) -> int:
        return int(self.packed.nbytes) + self.scales.nbytes

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)
        quantized, scales = quantize_rows(rows, self.zero, self.largest)
        product = torch.ops.onednn.qlinear_pointwise(
            *(quantized, 1.0, self.zero, self.packed, self.scales, self.zeros),
            *(None, 1.0, 0, self.out_dtype or x.dtype, "none", [], ""),
        )
        product.mul_(scales)
        if self.bias is not None:
            product.add_(self.bias)
        result: Tensor = product.view(*x.shape[:-1], self.out_features)
        return result


class NarrowOneDnnLinear(OneDnnLinear):
    """For any processor: activations of 7 bits, of which two products fit into the 16 bits in which AVX2
    without VNNI adds them. Twice as coarse, and never wrong."""

    zero, largest = _NARROW_ZERO, _NARROW_LARGEST


def weights_bytes(model: nn.Module) -> int:
    """What a model takes in memory; shared weights count once."""
    packed = sum(m.num_bytes for m in model.modules() if isinstance(m, Int8Linear))
    return packed + sum(t.nbytes for t in (*model.parameters(), *model.buffers()))


def joined_whole(linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
    """Weights as whole numbers, int8 (outputs, inputs), and what one of them stands for, (outputs,)."""
    return whole_rows(joined_weight(linears))


def whole_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """`joined_whole` of a weight, (outputs, inputs)."""
    scales = weight.abs().amax(1).float().clamp_min(1e-12) / 127
    return (weight / scales[:, None]).round_().to(torch.int8), scales


def joined_weight(linears: Sequence[nn.Linear]) -> Tensor:
    """(outputs of all, inputs)"""
    return torch.cat([linear.weight.detach() for linear in linears])


def joined_bias(linears: Sequence[nn.Linear]) -> Tensor | None:
    """(outputs,), zero for a layer that has none; None if none has one."""
    biases = [linear.bias for linear in linears]
    if all(bias is None for bias in biases):
        return None
    filled = [
        bias.detach() if bias is not None else linear.weight.new_zeros(linear.out_features)
        for bias, linear in zip(biases, linears, strict=True)
    ]
    return torch.cat(filled)


def quantize_rows(
    rows: Tensor, zero: int = _ZERO, largest: float = _LARGEST
) -> tuple[Tensor, Tensor]:
    """(rows, n) -> uint8 (rows, n) around `zero`, and scales (rows, 1) in the rows' own dtype.

    In that dtype the product is multiplied back without a conversion of all of it, and without an
    error: the scale is rounded before it is used.
    """
    if rows.numel() <= _BLOCK_VALUES:
        return _quantize_block(rows, zero, largest)
    quantized = torch.empty(rows.shape, dtype=torch.uint8)
    scales = rows.new_empty(rows.shape[0], 1)
    step = max(1, _BLOCK_VALUES // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        block = slice(start, start + step)
        quantized[block], scales[block] = _quantize_block(rows[block], zero, largest)
    return quantized, scales


def _quantize_block(rows: Tensor, zero: int, largest: float) -> tuple[Tensor, Tensor]:
    scales = rows.abs().amax(-1, keepdim=True).div_(largest).clamp_min_(1e-12)
    # Adding the half and cutting off rounds: the values are positive by then.
    return (rows / scales.float()).add_(zero + 0.5).to(torch.uint8), scales
