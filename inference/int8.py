"""Puts 8 or 4 bits in the place of a model's linear layers: half or a quarter of bfloat16's memory, and
several times its speed for few tokens."""

import logging
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from inference.errors import ModelRefused
from inference.int8_linear import Int8Linear, NarrowOneDnnLinear, OneDnnLinear
from inference.native.linear import Int4Linear, NativeLinear

logger = logging.getLogger(__name__)
Make = Callable[[Sequence[nn.Linear], torch.dtype | None], Int8Linear]
Join = Callable[[Sequence[nn.Linear], torch.dtype | None], nn.Module]
# The quickest first, and how wrong a random product may be, relatively. Sound kernels have .01 (.024 in
# activations of 7 bits), and .09 in 4 bits; saturating ones far more.
_KINDS: dict[int, dict[Make, float]] = {
    8: {NativeLinear: 0.02, OneDnnLinear: 0.02, NarrowOneDnnLinear: 0.04},
    4: {Int4Linear: 0.15},
}

_NOT_QUANTIZED = ("gate", "router")  # they choose experts: small, and a wrong choice costs much
_SIBLINGS = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("gate_proj", "up_proj"),
)


class Lead(nn.Module):
    """The first of several layers with one input: computes all of them, and hands out its part."""

    def __init__(self, linears: Sequence[nn.Linear], make: Join) -> None:
        super().__init__()
        self.joined = make(linears, None)
        self.sizes = [linear.out_features for linear in linears]
        self.in_features, self.out_features = linears[0].in_features, self.sizes[0]
        self.latest: tuple[Tensor, Sequence[Tensor]] | None = None

    def forward(self, x: Tensor) -> Tensor:
        return self.parts_of(x)[0]

    def parts_of(self, x: Tensor) -> Sequence[Tensor]:
        if self.latest is None or self.latest[0] is not x:
            self.latest = (x, self.joined(x).split(self.sizes, -1))
        return self.latest[1]


class Follower(nn.Module):
    """A later one. The last lets the results go: every layer would keep its activations."""

    def __init__(self, lead: Lead, index: int) -> None:
        super().__init__()
        self._lead = [lead]  # in a list, so that it is no submodule of two
        self.index = index
        self.in_features, self.out_features = lead.in_features, lead.sizes[index]

    @property
    def lead(self) -> Lead:
        return self._lead[0]

    def forward(self, x: Tensor) -> Tensor:
        lead = self.lead
        part = lead.parts_of(x)[self.index]
        if self.index == len(lead.sizes) - 1:
            lead.latest = None
        return part


def quantize(
    model: nn.Module,
    bits: int = 8,
    make: Make | None = None,
    fits: Callable[[Sequence[nn.Linear]], bool] | None = None,
    make_head: Make | None = None,
) -> int:
    """Put 8 or 4 bits in the place of all linear layers; returns how many were replaced.

    Layer by layer, so that the memory never holds both of all. The embedding stays as it is, experts
    that are no linear layers as well; lm_head has 8 bits in any case, as in every scheme that is used
    in earnest. Logits come in float32: argmax and softmax want that anyway, and bfloat16's would be
    rounded for nothing. `make` is the kind of layer, if it is not to be the processor's quickest,
    `make_head` lm_head's, if it is another one, and `fits` says which layers may become one. Raises
    ModelRefused where there is nothing to replace.
    """
    make, make_head = make or sound_kind(bits), make_head or make or sound_kind(8)
    if make is None or make_head is None:
        raise ModelRefused(f"This machine has no int{bits} products that are right.")
    count = 0
    for path, module in list(model.named_modules()):
        if set(path.split(".")) & set(_NOT_QUANTIZED):
            continue
        count += join_siblings(module, make, fits)
        for name, child in list(module.named_children()):
            may_be = type(child) is nn.Linear and (fits is None or fits([child]))
            if may_be and name not in _NOT_QUANTIZED:
                is_head = name == "lm_head"
                new = make_head([child], torch.float32) if is_head else make([child], None)
                setattr(module, name, new)
                count += 1
    if not count:
        raise ModelRefused("The model has no linear layers, so it cannot be quantized.")
    return count


def join_siblings(
    module: nn.Module, make: Join, fits: Callable[[Sequence[nn.Linear]], bool] | None = None
) -> int:
    """Make one layer of those children that have one input, and that `fits` says may become one;
    returns how many they were."""
    return sum(_join(module, names, make, fits) for names in _SIBLINGS)


def _join(
    module: nn.Module,
    names: tuple[str, ...],
    make: Join,
    fits: Callable[[Sequence[nn.Linear]], bool] | None,
) -> int:
    linears = [getattr(module, name, None) for name in names]
    if any(type(linear) is not nn.Linear for linear in linears):
        return 0
    found = [linear for linear in linears if isinstance(linear, nn.Linear)]
    if len({linear.in_features for linear in found}) > 1 or (fits and not fits(found)):
        return 0
    lead = Lead(found, make)
    setattr(module, names[0], lead)
    for index, name in enumerate(names[1:], start=1):
        setattr(module, name, Follower(lead, index))
    return len(found)


@cache
def sound_kind(bits: int = 8) -> Make | None:
    """The quickest kind of layer whose products are right on this processor; None if there is none."""
    return next((kind for kind, error in _KINDS[bits].items() if is_sound(kind, error)), None)


def is_sound(make: Make, max_error: float) -> bool:
    """Whether this processor's kernels multiply right: tried before they are used.

    The largest values are among those tried: kernels for AVX2 without VNNI add pairs in 16 bits, which
    overflow. So are sizes that fill no tile, and more rows than one.
    """
    generator = torch.Generator().manual_seed(1)
    linear = nn.Linear(270, 70)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(70, 270, generator=generator))
        linear.weight[0] = 1.0
        x = torch.randn(40, 270, generator=generator)
        x[0] = 1.0
        expected = linear(x)
        worst = 0.0
        try:
            layer = make([linear], None)
            for num_rows in (1, 3, 8, 40):
                error = layer(x[:num_rows]) - expected[:num_rows]
                relative = error.norm(dim=-1) / expected[:num_rows].norm(dim=-1)
                worst = max(worst, float(relative.max().nan_to_num(torch.inf)))
        except (RuntimeError, AttributeError, NotImplementedError) as problem:
            logger.info("no products of this kind here: %s", problem)
            return False
    if worst > max_error:
        logger.warning("this processor's products in few bits are wrong by %.3f", worst)
    return worst <= max_error
