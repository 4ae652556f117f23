"""Weights as whole numbers of 4 bits, on processors and GPUs alike: the numbers, and nothing of how they
lie in memory.

Each 32 inputs of an output have a factor, itself a whole number, and each output a scale: 4.25 bits a
weight, and a number times its factor is one of 8 bits. Source: Lin et al. 2024, "QServe: W4A8KV4
Quantization", section 4.1: progressive quantization.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

GROUP = 32
"""Inputs with one factor."""
HALF = 8  # numbers go from -HALF to HALF - 1
_LARGEST = -HALF * 15  # of a number and a factor; on the other side it is 105


def quantize(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """weight: (outputs, inputs) -> numbers, int8 (outputs, inputs); factors from 1 to 15, float32
    (outputs, groups); scales, float32 (outputs,). A weight is about number * factor * scale."""
    weight = weight.float()
    # With the sign that puts an output's largest weight on the longer side, as in GGML's Q4_0.
    extremes = weight.gather(1, weight.abs().argmax(1, keepdim=True)).squeeze(1)
    scales = extremes.where(extremes.abs() > 1e-12, 1e-12) / _LARGEST
    groups = pad(weight / scales[:, None], (0, -weight.shape[1] % GROUP))
    groups = groups.view(len(weight), -1, GROUP)
    factors = _best_factors(groups)
    numbers = (groups / factors[..., None]).round_().clamp_(-HALF, HALF - 1)
    return numbers.flatten(1)[:, : weight.shape[1]].to(torch.int8).contiguous(), factors, scales


def _best_factors(groups: Tensor) -> Tensor:
    """The whole factor from 1 to 15 with the least squared error. groups: (outputs, groups, n)."""
    least = (groups.abs().amax(-1) / HALF).floor_().clamp_(1, 13)
    best = least.clone()
    best_error = torch.full_like(least, torch.inf)
    for more in range(3):
        factors = least + more
        rounded = (groups / factors[..., None]).round_().clamp_(-HALF, HALF - 1)
        error = (rounded * factors[..., None] - groups).square_().sum(-1)
        is_better = error < best_error
        best = torch.where(is_better, factors, best)
        best_error = torch.where(is_better, error, best_error)
    return best
