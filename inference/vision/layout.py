"""Whether a model sees, and how images stand in its prompts, told by its files; nothing is loaded."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from inference.errors import ModelRefused
from inference.kinds import LOOK_EVERY_S
from inference.vision.rules import (
    MOST_ROWS,
    AnyResolution,
    Canvas,
    Grid,
    MarkedTiles,
    OneTile,
    Rule,
)
from inference.weights import odd_values_refused, read_config

PROCESSOR_FILES = ("processor_config.json", "preprocessor_config.json")
_CLASS_ROWS = {"clip_vision_model": 1, "siglip_vision_model": 0}  # in front of those of patches
# What transformers takes where config.json says nothing.
_CLIP: dict[str, Any] = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
_SIGLIP: dict[str, Any] = {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
_NEXT_RESOLUTIONS = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
_SIDES = range(384, 2305, 384)
_ONE_RESOLUTIONS = tuple((height, width) for height in _SIDES for width in _SIDES)
# Each token of an image, and of what was asked with it, looks at all of them, in front and behind.
_BOTH_WAYS = frozenset({"paligemma"})


@dataclass(frozen=True, slots=True)
class VisionLayout:
    """`image_token_id` stands in a prompt wherever a row of an image does. Images are prepared as the
    model's files say, and `prepared_with`, which transformers has in the code of its family, or which is
    less than the files allow."""

    image_token_id: int
    rule: Rule
    prepared_with: tuple[tuple[str, Any], ...] = ()


def served_families() -> str:
    """By the names that config.json has for them."""
    return ", ".join(sorted(_READERS))


def read_layout(path: Path) -> VisionLayout | None:
    """None for a model that reads texts only, or whose eyes are not served: then it does as well.

    Raises ModelRefused.
    """
    config = read_config(path)
    model_type = str(config.get("model_type"))
    if model_type in _BOTH_WAYS:
        raise ModelRefused(
            f"The architecture '{model_type}' reads an image and a question in both directions at once,"
            " which no cache of keys and values that is read on from can serve."
        )
    read = _READERS.get(model_type)
    if read is None or not _is_whole(config):
        return None
    with odd_values_refused(path):
        return read(config, read_processor(path))


def layout_at(path: Path) -> VisionLayout | None:
    """As `read_layout`; None where nothing can be told: what is wrong is said when the model is loaded.

    The disk is looked at once in LOOK_EVERY_S.
    """
    now_s = monotonic()
    looked_s, layout = _looked.get(path, (-LOOK_EVERY_S, None))
    if now_s - looked_s >= LOOK_EVERY_S:
        stamps = tuple(_stamp(path / name) for name in ("config.json", *PROCESSOR_FILES))
        if stamps[0] is not None:  # else it was deleted, or another revision arrives
            layout = _layout_at(path, stamps)
        _looked[path] = now_s, layout
    return layout


# Of the models of a catalogue, which are not many.
_looked: dict[Path, tuple[float, VisionLayout | None]] = {}


@lru_cache(maxsize=1024)
def _layout_at(path: Path, stamps: tuple[int | None, ...]) -> VisionLayout | None:
    try:
        return read_layout(path)
    except ModelRefused:
        return None


def _stamp(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def read_processor(path: Path) -> dict[str, Any]:
    """How images are prepared, as transformers finds it; empty where no file says so."""
    for name in PROCESSOR_FILES:
        try:
            values = json.loads((path / name).read_text())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(values, dict) and name == PROCESSOR_FILES[0]:
            values = values.get("image_processor")
        if isinstance(values, dict):
            return values
    return {}


def _is_whole(config: dict[str, Any]) -> bool:
    """Whether it is the model that writes, and not a part of it."""
    named = config.get("architectures")
    return isinstance(named, list) and any("ConditionalGeneration" in str(one) for one in named)


def _llava(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    rows, _ = _rows_of_tile(config, _CLIP, "default")
    return VisionLayout(_image_token_id(config, 32_000), OneTile(rows))


def _llava_next(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    resolutions = config.get("image_grid_pinpoints") or _NEXT_RESOLUTIONS
    rule = _any_resolution(config, _CLIP, "default", resolutions)
    return VisionLayout(_image_token_id(config, 32_000), rule)


def _llava_onevision(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    resolutions = config.get("image_grid_pinpoints") or _ONE_RESOLUTIONS
    limit = str(config.get("vision_aspect_ratio", "anyres_max_9"))
    most_tiles = int(limit.removeprefix("anyres_max_"))
    rule = _any_resolution(config, _SIGLIP, "full", resolutions, most_tiles)
    rule = replace(rule, tiles_lone_only=True)
    return VisionLayout(_image_token_id(config, 151_646), rule)


def _idefics3(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    vision = config.get("vision_config") or {}
    tile_px = int((processor.get("max_image_size") or {}).get("longest_edge", 364))
    side = tile_px // int(vision.get("patch_size", 32)) // int(config.get("scale_factor", 2))
    rule = MarkedTiles(
        num_rows=side**2,
        tile_px=tile_px,
        longest_px=int((processor.get("size") or {}).get("longest_edge", 4 * 364)),
        is_split=bool(processor.get("do_image_splitting", True)),
    )
    return VisionLayout(_image_token_id(config, 128_257), rule)


def _internvl(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    vision = config.get("vision_config") or {}
    side = _px(vision.get("image_size", 448)) // _px(vision.get("patch_size", 14))
    rule = Canvas(
        num_rows=int(side * float(config.get("downsample_ratio", 0.5))) ** 2,
        tile_px=int((processor.get("size") or {}).get("height", 384)),
        least_tiles=int(processor.get("min_patches", 1)),
        most_tiles=int(processor.get("max_patches", 12)),
    )
    token_id = _image_token_id(config, 151_667)
    return VisionLayout(token_id, rule, (("crop_to_patches", True),))


def _qwen_vl(config: dict[str, Any], processor: dict[str, Any]) -> VisionLayout:
    """Its files allow images of 16,384 rows, which a tower attends to with all of their patches."""
    sizes = processor.get("size") or {}
    square_px = int(processor.get("patch_size", 14)) * int(processor.get("merge_size", 2))
    least = int(processor.get("min_pixels") or sizes.get("shortest_edge") or 56**2)
    most = int(processor.get("max_pixels") or sizes.get("longest_edge") or 1280 * 28**2)
    if min(square_px, least, most) < 1:
        raise ModelRefused("Its images would be cut into squares, or made to sizes, of no pixels.")
    most = min(most, MOST_ROWS * square_px**2)
    rule = Grid(square_px, min(least, most), most)
    size = {"shortest_edge": rule.least_pixels, "longest_edge": rule.most_pixels}
    return VisionLayout(_image_token_id(config, 151_655), rule, (("size", size),))


def _px(value: Any) -> int:
    """Of a square, whose sides may be listed."""
    return int(value[0] if isinstance(value, list) else value)


_READERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], VisionLayout]] = {
    "llava": _llava,
    "llava_next": _llava_next,
    "llava_onevision": _llava_onevision,
    "idefics3": _idefics3,
    "internvl": _internvl,
    "qwen2_5_vl": _qwen_vl,
    "qwen2_vl": _qwen_vl,
    "qwen3_vl": _qwen_vl,
    "smolvlm": _idefics3,
}


def _image_token_id(config: dict[str, Any], default: int) -> int:
    return int(config.get("image_token_id", config.get("image_token_index", default)))


def _rows_of_tile(
    config: dict[str, Any], defaults: dict[str, Any], strategy: str
) -> tuple[int, int]:
    """How many rows a tile becomes, and how many patches are in each of its lines."""
    vision = config.get("vision_config") or defaults
    kind = vision.get("model_type", defaults["model_type"])
    if kind not in _CLASS_ROWS:
        raise ModelRefused(f"Its images go through '{kind}', whose rows are not known here.")
    side = int(vision.get("image_size", 224)) // int(
        vision.get("patch_size", 32 if kind == "clip_vision_model" else 16)
    )
    is_cut = config.get("vision_feature_select_strategy", strategy) == "default"
    return side**2 + _CLASS_ROWS[kind] - is_cut, side


def _any_resolution(
    config: dict[str, Any],
    defaults: dict[str, Any],
    strategy: str,
    resolutions: Any,
    most_tiles: int | None = None,
) -> AnyResolution:
    num_rows, side = _rows_of_tile(config, defaults, strategy)
    vision = config.get("vision_config") or defaults
    return AnyResolution(
        num_base_rows=num_rows,
        tile_px=int(vision.get("image_size", 224)),
        side=side,
        resolutions=tuple((int(height), int(width)) for height, width in resolutions),
        most_tiles=most_tiles,
    )
