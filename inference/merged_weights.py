"""Weights of a model with an adapter in them, beside its own: nothing is multiplied twice then.

For models that compute one adapter at a time, and that are small: such an adapter takes as much memory
as the layers that it changes. Imports torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from torch import Tensor, nn

from inference.adapter_weights import Pair, Place

MAX_BYTES = 64 * 2**20  # of one adapter


@dataclass(frozen=True, slots=True)
class _Layer:
    module: nn.Module
    own: nn.Parameter
    merged: nn.Parameter


class MergedWeights:
    """Of one adapter; `size_bytes` are what they take beside the model's own."""

    def __init__(self, layers: list[_Layer]) -> None:
        self._layers = layers
        self.size_bytes = sum(layer.merged.nbytes for layer in layers)

    @classmethod
    def of(cls, places: Mapping[str, Place], pairs: Mapping[str, Pair]) -> Self | None:
        """None where a layer is not plain, or all of them are too large."""
        own: dict[str, nn.Parameter] = {}
        for path, place in places.items():
            weight = place.module._parameters.get("weight")
            # A class of its own may compute something else with its weights.
            if type(place.module) is not nn.Linear or weight is None:
                return None
            own[path] = weight
        is_too_large = sum(weight.nbytes for weight in own.values()) > MAX_BYTES
        is_shared = len(set(map(id, own.values()))) < len(own)
        if is_too_large or is_shared or not all(w.is_floating_point() for w in own.values()):
            return None
        return cls(
            [
                _Layer(places[path].module, weight, _sum(weight, *pairs[path]))
                for path, weight in own.items()
            ]
        )

    def put_in(self) -> None:
        for layer in self._layers:
            # Past nn.Module's own __setattr__, which takes longer than all else here.
            layer.module._parameters["weight"] = layer.merged

    def take_out(self) -> None:
        for layer in self._layers:
            layer.module._parameters["weight"] = layer.own


def _sum(weight: Tensor, a: Tensor, b: Tensor) -> nn.Parameter:
    total = weight.float() + b.float() @ a.float()
    return nn.Parameter(total.to(weight.dtype).to(weight.device), requires_grad=False)
