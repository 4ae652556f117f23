"""Layers of a model with an adapter in their weights, beside its own: nothing is multiplied twice then.

For models that compute one adapter at a time, and that are small: such an adapter takes as much memory
as the layers that it changes. Imports torch.
"""

from collections.abc import Callable, Mapping
from typing import Self

from torch import nn
from transformers.pytorch_utils import Conv1D

from inference.adapter_weights import Pair, Place
from inference.errors import ModelRefused
from inference.int8_linear import weights_bytes

MAX_BYTES = 64 * 2**20  # of one adapter
Change = Callable[[nn.Module], None]
Again = Callable[[Change], nn.Module]
"""Loads a model once more, the weights of which are changed before they are given fewer bits."""


class MergedWeights:
    """Of one adapter; `size_bytes` are what they take beside the model's own."""

    def __init__(self, layers: list[tuple[nn.Module, nn.Module]]) -> None:
        """layers: the model's own, and those in their place."""
        self._layers = layers
        self.size_bytes = sum(weights_bytes(merged) for _, merged in layers)

    @classmethod
    def of(
        cls, model: nn.Module, places: Mapping[str, Place], change: Change, again: Again
    ) -> Self | None:
        """`change` puts the adapter into the weights. None where the layers are too large."""
        own = {id(place.module) for place in places.values()}
        paths = {path: module for path, module in model.named_modules() if id(module) in own}
        if sum(map(weights_bytes, paths.values())) > MAX_BYTES:
            return None
        changed = again(change)
        return cls([(module, changed.get_submodule(path)) for path, module in paths.items()])

    def put_in(self) -> None:
        for module, merged in self._layers:
            # Past nn.Module's own __setattr__, which takes longer than all else here.
            module.__dict__["forward"] = merged.forward

    def take_out(self) -> None:
        for module, _ in self._layers:
            del module.__dict__["forward"]


def add_to_weights(places: Mapping[str, Place], pairs: Mapping[str, Pair]) -> None:
    """Add B·A to the weights of plain layers. Raises ModelRefused where two layers share theirs."""
    weights = {path: places[path].module.get_parameter("weight") for path in pairs}
    if len(set(map(id, weights.values()))) < len(weights):
        raise ModelRefused("Layers that the adapter changes share their weights.")
    for path, pair in pairs.items():
        add_to_weight(places[path].module, pair)


def add_to_weight(module: nn.Module, pair: Pair) -> None:
    """Add B·A to the weight of a plain layer."""
    a, b = pair
    product = b.float() @ a.float()
    weight = module.get_parameter("weight").data
    # A Conv1D's weights are (inputs, outputs).
    weight += (product.T if isinstance(module, Conv1D) else product).to(weight.dtype)
