"""Linear layers in 8 bits: half of bfloat16's memory, and several times its speed for few tokens.

Weights have one scale per output channel, activations one per token, measured as they come (dynamic
quantization, as in LLM.int8(), Dettmers et al. 2022, without its outlier path). A scale per token means
that no request disturbs its neighbours in the batch; with one for the whole batch, a single outlier cost
the others 37 % (cpu.md). oneDNN multiplies; the sums are whole numbers, so the same row gives the same
result in any batch.
"""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inference.errors import ModelRefused

logger = logging.getLogger(__name__)
_ZERO = 128  # activations are unsigned: processors without AMX multiply u8 by s8 only
_LARGEST = 126.5  # below 127 by more than bfloat16 may round a scale down
_MAX_ERROR = 0.02  # relative, of a random product; sound kernels have .01, saturating ones far more
_BLOCK_VALUES = 65_536  # quantized at a time: what is read twice is then still in the cache
_NOT_QUANTIZED = ("gate", "router")  # they choose experts: small, and a wrong choice costs much
_SIBLINGS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


class Int8Linear(nn.Module):
    """One or several linear layers that read the same input, as one product.

    forward: (..., in_features) -> (..., sum of the layers' out_features), in the input's dtype.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        super().__init__()
        weight = torch.cat([linear.weight.detach() for linear in linears])
        self.in_features = weight.shape[1]
        self.out_features = weight.shape[0]
        scales = weight.abs().amax(1).float().clamp_min(1e-12) / 127
        whole = (weight / scales[:, None]).round_().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(whole, None)
        self.scales = scales
        self.zeros = torch.zeros(self.out_features, dtype=torch.int32)
        self.bias = _joined_bias(linears)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)
        quantized, scales = quantize_rows(rows)
        product = torch.ops.onednn.qlinear_pointwise(
            *(quantized, 1.0, _ZERO, self.packed, self.scales, self.zeros),
            *(None, 1.0, 0, x.dtype, "none", [], ""),
        )
        product.mul_(scales)
        if self.bias is not None:
            product.add_(self.bias)
        result: Tensor = product.view(*x.shape[:-1], self.out_features)
        return result


def _joined_bias(linears: Sequence[nn.Linear]) -> Tensor | None:
    biases = [linear.bias for linear in linears]
    if all(bias is None for bias in biases):
        return None
    filled = [
        bias.detach() if bias is not None else linear.weight.new_zeros(linear.out_features)
        for bias, linear in zip(biases, linears, strict=True)
    ]
    return torch.cat(filled)


def quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, n) -> uint8 (rows, n) around 128, and scales (rows, 1) in the rows' own dtype.

    In that dtype the product is multiplied back without a conversion of all of it, and without an
    error: the scale is rounded before it is used.
    """
    if rows.numel() <= _BLOCK_VALUES:
        return _quantize_block(rows)
    quantized = torch.empty(rows.shape, dtype=torch.uint8)
    scales = rows.new_empty(rows.shape[0], 1)
    step = max(1, _BLOCK_VALUES // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        block = slice(start, start + step)
        quantized[block], scales[block] = _quantize_block(rows[block])
    return quantized, scales


def _quantize_block(rows: Tensor) -> tuple[Tensor, Tensor]:
    scales = rows.abs().amax(-1, keepdim=True).div_(_LARGEST).clamp_min_(1e-12)
    # Adding the half and cutting off rounds: the values are positive by then.
    return (rows / scales.float()).add_(_ZERO + 0.5).to(torch.uint8), scales


class _Lead(nn.Module):
    """The first of several layers with one input: computes all of them, and hands out its part."""

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.joined = Int8Linear(linears)
        self.sizes = [linear.out_features for linear in linears]
        self.in_features, self.out_features = linears[0].in_features, self.sizes[0]
        self.latest: tuple[Tensor, Sequence[Tensor]] | None = None

    def forward(self, x: Tensor) -> Tensor:
        return self.parts_of(x)[0]

    def parts_of(self, x: Tensor) -> Sequence[Tensor]:
        if self.latest is None or self.latest[0] is not x:
            self.latest = (x, self.joined(x).split(self.sizes, -1))
        return self.latest[1]


class _Follower(nn.Module):
    """A later one. The last lets the results go: every layer would keep its activations."""

    def __init__(self, lead: _Lead, index: int) -> None:
        super().__init__()
        self._lead = [lead]  # in a list, so that it is no submodule of two
        self.index = index
        self.in_features, self.out_features = lead.in_features, lead.sizes[index]

    def forward(self, x: Tensor) -> Tensor:
        lead = self._lead[0]
        part = lead.parts_of(x)[self.index]
        if self.index == len(lead.sizes) - 1:
            lead.latest = None
        return part


def quantize(model: nn.Module) -> int:
    """Put 8 bits in the place of all linear layers; returns how many were replaced.

    Layer by layer, so that the memory never holds both of all. The embedding stays as it is, experts
    that are no linear layers as well. Raises ModelRefused where there is nothing to replace.
    """
    count = 0
    for path, module in list(model.named_modules()):
        if set(path.split(".")) & set(_NOT_QUANTIZED):
            continue
        for names in _SIBLINGS:
            count += _join_siblings(module, names)
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and name not in _NOT_QUANTIZED:
                setattr(module, name, Int8Linear([child]))
                count += 1
    if not count:
        raise ModelRefused("The model has no linear layers, so it cannot be quantized to int8.")
    return count


def _join_siblings(module: nn.Module, names: tuple[str, ...]) -> int:
    linears = [getattr(module, name, None) for name in names]
    if any(type(linear) is not nn.Linear for linear in linears):
        return 0
    found = [linear for linear in linears if isinstance(linear, nn.Linear)]
    if len({linear.in_features for linear in found}) > 1:
        return 0
    lead = _Lead(found)
    setattr(module, names[0], lead)
    for index, name in enumerate(names[1:], start=1):
        setattr(module, name, _Follower(lead, index))
    return len(found)


def is_sound() -> bool:
    """Whether this processor's kernels multiply right: a private operation, tried before it is used.

    The largest values are among those tried: kernels for AVX2 without VNNI add pairs in 16 bits, which
    overflow.
    """
    generator = torch.Generator().manual_seed(1)
    linear = nn.Linear(256, 64, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(64, 256, generator=generator))
        linear.weight[0] = 1.0
        x = torch.randn(8, 256, generator=generator)
        x[0] = 1.0
        try:
            found = Int8Linear([linear])(x)
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            logger.warning("this processor has no int8 kernels: %s", error)
            return False
        expected = linear(x)
    worst = float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max())
    if not worst <= _MAX_ERROR:
        logger.warning("this processor's int8 kernels are wrong by %.3f", worst)
    return worst <= _MAX_ERROR
