"""Tiles of an image go through a tower a few at a time. Imports torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from inference.vision.parts import TOWERS
from inference.vision.room import MOST_TILES


def limit_tiles(module: Any) -> None:
    """Let the tower of transformers' model have no more than MOST_TILES tiles at once, whose results
    are joined: memory is then the same for an image of one tile and for one of thirteen."""
    tower = next((getattr(module, one) for one in TOWERS if hasattr(module, one)), None)
    if not isinstance(tower, nn.Module):
        return
    taken = getattr(module.config, "vision_feature_layer", None)
    layers = taken if isinstance(taken, list) else [taken]
    tower.forward = _in_parts(tower.forward, [one for one in layers if isinstance(one, int)])


def _in_parts(forward: Callable[..., Any], layers: list[int]) -> Callable[..., Any]:
    """`layers` are those whose results are read; those of others are dropped with their part."""

    def in_parts(pixel_values: Tensor, **more: Any) -> Any:
        num_tiles = len(pixel_values)
        if num_tiles <= MOST_TILES:
            return forward(pixel_values, **more)
        parts = []
        for start in range(0, num_tiles, MOST_TILES):
            end = start + MOST_TILES
            own = {
                name: value[start:end]
                if isinstance(value, Tensor) and value.dim() and len(value) == num_tiles
                else value
                for name, value in more.items()
            }
            parts.append(_lean(forward(pixel_values[start:end], **own), layers))
        return _joined(parts)

    return in_parts


def _lean(output: Any, layers: list[int]) -> Any:
    found = output.get("hidden_states")
    if found is not None:
        read = {layer % len(found) for layer in layers}
        output["hidden_states"] = tuple(
            one if number in read or one is None else one[:, :0]  # transformers drops some itself
            for number, one in enumerate(found)
        )
    return output


def _joined(parts: list[Any]) -> Any:
    """Outputs of transformers', the tiles of each behind those of the one before."""
    first = parts[0]
    joined: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, Tensor):
            joined[name] = torch.cat([part[name] for part in parts])
        else:
            layers = zip(*(part[name] for part in parts), strict=True)
            joined[name] = tuple(None if one[0] is None else torch.cat(one) for one in layers)
    return type(first)(**joined)
