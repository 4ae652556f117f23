"""How much memory seeing takes beside a model's weights. By its files; no torch here."""

from pathlib import Path
from typing import Any

from inference.vision.layout import layout_at
from inference.vision.rules import Grid
from inference.weights import odd_values_refused, read_config

KEPT_BYTES = 256 * 2**20  # of rows, on the host
MOST_TILES = 4  # at once: an image may be in thirteen, and each takes as much as a prompt
# Of a tile in a layer: its input, sum, norm, queries, keys, values, heads' results and their product.
_NUM_WIDE = 8
# Of a patch of a grid beside that, in float32: queries and keys while they are turned, six times its
# width; and what it is prepared from, four times. Measured of real widths: 105 KB where 131 are counted
# (Qwen2-VL, float32), 67 where 84 are (Qwen2.5-VL, bfloat16).
_NUM_TURNED = 6
_NUM_PREPARED = 4
_GRIDS = {"patch_size": 14, "temporal_patch_size": 2, "in_channels": 3, "mlp_ratio": 4}
_LARGEST = {  # where a file says nothing: SigLIP's of LLaVA-OneVision
    "image_size": 384,
    "patch_size": 14,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
}


def seeing_bytes(path: Path, weight_bytes: int, *, on_gpu: bool) -> int:
    """What a worker takes for looking at MOST_TILES at once, or at the largest grid, and on a processor
    for the rows that it keeps; 0 for a model that reads texts only. Raises ModelRefused."""
    layout = layout_at(path)
    if layout is None:
        return 0
    vision = read_config(path).get("vision_config") or {}
    kept_bytes = 0 if on_gpu else KEPT_BYTES
    if isinstance(layout.rule, Grid):
        with odd_values_refused(path):
            return _grid_bytes(layout.rule, vision, weight_bytes) + kept_bytes
    with odd_values_refused(path):
        size = {name: _number(vision.get(name, usual)) for name, usual in _LARGEST.items()}
        num_patches = (size["image_size"] // size["patch_size"]) ** 2 + 1
        # All layers' results are kept until the one is taken out that the rows are made of.
        wide = (size["num_hidden_layers"] + _NUM_WIDE) * size["hidden_size"]
        tile_bytes = num_patches * (wide + 2 * size["intermediate_size"]) * weight_bytes
    return MOST_TILES * tile_bytes + kept_bytes


def _grid_bytes(rule: Grid, vision: dict[str, Any], weight_bytes: int) -> int:
    patch = {name: _number(vision.get(name, usual)) for name, usual in _GRIDS.items()}
    width = _number(vision.get("embed_dim") or vision.get("hidden_size") or 1280)
    inner = _number(vision.get("intermediate_size") or patch["mlp_ratio"] * width)
    num_values = patch["in_channels"] * patch["temporal_patch_size"] * patch["patch_size"] ** 2
    in_float32 = _NUM_TURNED * width + _NUM_PREPARED * num_values
    patch_bytes = (_NUM_WIDE * width + 2 * inner) * weight_bytes + 4 * in_float32
    return rule.most_pixels // patch["patch_size"] ** 2 * patch_bytes


def _number(value: Any) -> int:
    """Of a square, whose sides may be listed."""
    return int(value[0] if isinstance(value, list) else value)
