"""How much memory seeing takes beside a model's weights. By its files; no torch here."""

from pathlib import Path
from typing import Any

from inference.vision.layout import layout_at
from inference.weights import odd_values_refused, read_config

KEPT_BYTES = 256 * 2**20  # of rows, on the host
MOST_TILES = 4  # at once: an image may be in thirteen, and each takes as much as a prompt
# Of a tile in a layer: its input, sum, norm, queries, keys, values, heads' results and their product.
_NUM_WIDE = 8
_LARGEST = {  # where a file says nothing: SigLIP's of LLaVA-OneVision
    "image_size": 384,
    "patch_size": 14,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
}


def seeing_bytes(path: Path, weight_bytes: int, *, on_gpu: bool) -> int:
    """What a worker takes for looking at MOST_TILES at once, and on a processor for the rows that it
    keeps; 0 for a model that reads texts only. Raises ModelRefused."""
    if layout_at(path) is None:
        return 0
    vision = read_config(path).get("vision_config") or {}
    with odd_values_refused(path):
        size = {name: _number(vision.get(name, usual)) for name, usual in _LARGEST.items()}
        num_patches = (size["image_size"] // size["patch_size"]) ** 2 + 1
        # All layers' results are kept until the one is taken out that the rows are made of.
        wide = (size["num_hidden_layers"] + _NUM_WIDE) * size["hidden_size"]
        tile_bytes = num_patches * (wide + 2 * size["intermediate_size"]) * weight_bytes
    return MOST_TILES * tile_bytes + (0 if on_gpu else KEPT_BYTES)


def _number(value: Any) -> int:
    """Of a square, whose sides may be listed."""
    return int(value[0] if isinstance(value, list) else value)
