"""Rows of images that go into a model behind its first layers, too. Imports torch.

A tower's middle layers see other things than its last one. Qwen3-VL adds what they make of an image to
the rows of it that come out of the first layers. Source: Meng et al. 2024, "DeepStack"
(arXiv:2406.04334).
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inference import attention


class DeepRows:
    """Of one step: what is added behind each of the first layers, (places, width) each, and where, in
    ascending order."""

    def __init__(self, places: Sequence[int], on_places: Tensor, rows: Sequence[Tensor]) -> None:
        self._places = places
        self._on_places = on_places
        self._rows = rows

    @classmethod
    def of(
        cls, places: Sequence[int], on_places: Tensor, rows: Tensor, width: int
    ) -> "DeepRows | None":
        """`rows`: (places, layers * width). None for a model that has no such layers."""
        if not rows.shape[1]:
            return None
        return cls(places, on_places, torch.split(rows, width, dim=1))

    def add_to(self, hidden: Tensor, layer: int) -> None:
        """hidden: (1, tokens, width), behind that layer. Tokens that are not in it are the last ones
        (see layered_rows)."""
        if layer < len(self._rows):
            num = bisect_left(self._places, hidden.shape[1])
            hidden[0].index_add_(0, self._on_places[:num], self._rows[layer][:num].to(hidden.dtype))


def add_deep_rows(layers: Sequence[nn.Module]) -> None:
    """From now on, behind each of these layers, which are a model's first ones."""
    for number, layer in enumerate(layers):
        layer.register_forward_hook(_Added(number))


class _Added:
    def __init__(self, layer: int) -> None:
        self._layer = layer

    def __call__(self, module: nn.Module, given: Any, hidden: Any) -> None:
        context = attention.get_context()
        if context is not None and context.deep is not None:
            context.deep.add_to(hidden, self._layer)
