"""Proof, at load time, that a model sees over our cache what it sees by itself.

A small copy of the architecture, with random weights but with the real sizes of its tiles, reads noise
prepared as the model's files say: once by transformers' own forward, and packed with other prompts and
cut into chunks, in the midst of images, too. Imports torch.
"""

import io
import re
from copy import deepcopy
from dataclasses import replace
from math import ceil, prod, sqrt
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from transformers import AutoModelForImageTextToText, PretrainedConfig

from inference.block_pool import BLOCK_TOKENS
from inference.context_window import max_context_tokens
from inference.errors import ModelRefused
from inference.kv_cache import SlabKV
from inference.model_runner import ModelRunner
from inference.selftest import require_right, run_packed, widen, worst_error
from inference.small_config import VOCAB_SIZE, shrink
from inference.vision.eyes import Eyes, read_image_processor
from inference.vision.layout import VisionLayout
from inference.vision.loading import parted
from inference.vision.prompt_images import PromptImage, digest_of
from inference.vision.rules import AnyResolution, Grid, is_one_square, num_columns

_SIZES_PX = ((30, 120), (132, 33))  # of few tiles, whatever their longer side becomes
_CHUNK_TOKENS = 150  # of images that have some hundreds
_GRIDS = ((5, 9), (7, 4))  # of rows, where an image is no tiles
_GRID_CHUNK_TOKENS = 20
_SMALL_TOWER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "projection_dim": 32,
}
_TEXT_IDS = range(3, VOCAB_SIZE - 1)
_ROW = "\0"


def check_seeing(config: PretrainedConfig, path: Path, layout: VisionLayout) -> None:
    """Raise ModelRefused when the model would see something else over our cache."""
    require_right(
        config,
        lambda: seeing_error(config, path, layout),
        fails="does not see over Vitrine's KV cache",
        differs="of an image over Vitrine's KV cache than by itself",
    )


@torch.inference_mode()
def seeing_error(config: PretrainedConfig, path: Path, layout: VisionLayout) -> float:
    """The largest relative difference of logits, packed against plain; may be NaN.

    Raises ModelRefused.
    """
    small = _shrunk(config)
    own = replace(layout, image_token_id=VOCAB_SIZE - 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole: Any = AutoModelForImageTextToText.from_config(  # type: ignore[no-untyped-call]
            small, dtype=torch.float32
        ).eval()
        widen(whole)
        prompts, images = _prompts(own)
    longest = max(map(len, prompts))
    if longest > max_context_tokens(small):
        raise ModelRefused("An image is longer than the context in which its answers are sound.")
    plain = _plain(whole, path, own, prompts, images)
    writer, eyes = parted(whole, own, path)
    num_tokens = -(-longest // BLOCK_TOKENS) * BLOCK_TOKENS + BLOCK_TOKENS
    runner = ModelRunner(writer, SlabKV(len(prompts) * num_tokens, num_tokens), eyes=eyes)
    chunk_tokens = _GRID_CHUNK_TOKENS if isinstance(layout.rule, Grid) else _CHUNK_TOKENS
    packed = run_packed(runner, prompts, images=images, chunk_tokens=chunk_tokens)
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


def _plain(
    whole: Any,
    path: Path,
    layout: VisionLayout,
    prompts: list[list[int]],
    images: list[tuple[PromptImage, ...]],
) -> list[Tensor]:
    """By transformers' own forward: (tokens, vocab) for each prompt."""
    eyes = Eyes(whole.model, read_image_processor(path), layout)
    found = []
    for prompt, own in zip(prompts, images, strict=True):
        inputs: dict[str, Tensor] = {}
        for image in own:
            is_square = is_one_square(layout.rule, image.num_ids)
            more = eyes.inputs_of(Image.open(io.BytesIO(image.data)), is_square)
            inputs = {key: torch.cat([inputs[key], more[key]]) for key in inputs} or more
        ids = torch.tensor([prompt])
        if "image_grid_thw" in inputs:  # where positions are of a grid
            inputs["mm_token_type_ids"] = (ids == layout.image_token_id).int()
        output = whole(input_ids=ids, use_cache=False, **inputs)
        found.append(output.logits[0])
    return found


def _shrunk(config: PretrainedConfig) -> PretrainedConfig:
    """With few narrow layers, and tiles of the same number of patches."""
    small: Any = deepcopy(config)
    small.text_config = shrink(config)
    small.image_token_id = VOCAB_SIZE - 1
    tower = small.vision_config
    if isinstance(getattr(tower, "depth", None), int):
        _shrink_grid_tower(tower, small.text_config)
        return cast(PretrainedConfig, small)
    layers = getattr(config, "vision_feature_layer", 0)
    deepest = max(map(abs, layers if isinstance(layers, list) else [layers]))
    for name, value in {**_SMALL_TOWER, "num_hidden_layers": max(2, deepest)}.items():
        if hasattr(tower, name):
            setattr(tower, name, value)
    return cast(PretrainedConfig, small)


def _shrink_grid_tower(tower: Any, text: Any) -> None:
    """Of Qwen-VL: of its last layers one attends within windows, and one to all, where both are."""
    num_deep = min(text.num_hidden_layers, len(getattr(tower, "deepstack_visual_indexes", ())))
    of_kinds = {
        "depth": 2,
        "num_heads": 2,
        "intermediate_size": 64,
        "mlp_ratio": 2,
        "embed_dim": 32,
        "hidden_size": text.hidden_size if hasattr(tower, "embed_dim") else 32,
        "out_hidden_size": text.hidden_size,
        "fullatt_block_indexes": [1],
        "deepstack_visual_indexes": [*range(2)][:num_deep],
    }
    for name, value in of_kinds.items():
        if hasattr(tower, name):
            setattr(tower, name, value)


def _prompts(layout: VisionLayout) -> tuple[list[list[int]], list[tuple[PromptImage, ...]]]:
    """One with each image in its midst, and one of text alone, which is read beside them. And one with
    all of them, where images that are not alone are seen in another way."""
    shown: list[tuple[tuple[int, int], ...]] = [(size,) for size in _SIZES_PX]
    if isinstance(layout.rule, AnyResolution) and layout.rule.tiles_lone_only:
        shown = [*shown, _SIZES_PX]
    elif isinstance(layout.rule, Grid):
        shown = [tuple(_pixels_of(grid, layout.rule) for grid in _GRIDS)]
    prompts, images = [_some_text(26)], list[tuple[PromptImage, ...]]([()])
    rng = np.random.default_rng(0)
    for sizes in shown:
        prompt: list[int] = []
        placed: list[PromptImage] = []
        for height, width in sizes:
            pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            data = file.getvalue()
            ids = _expanded(layout, layout.rule.text(_ROW, height, width, len(sizes) == 1))
            prompt += _some_text(7)
            columns = num_columns(layout.rule, height, width)
            placed.append(PromptImage(len(prompt), len(ids), digest_of(data), data, columns))
            prompt += ids
        prompts.append([*prompt, *_some_text(11)])
        images.append(tuple(placed))
    return prompts, images


def _pixels_of(grid: tuple[int, int], rule: Grid) -> tuple[int, int]:
    """Of an image that becomes so many lines and columns, or as many times more as it takes."""
    times = ceil(sqrt(rule.least_pixels / (prod(grid) * rule.square_px**2)))
    return grid[0] * rule.square_px * times, grid[1] * rule.square_px * times


def _expanded(layout: VisionLayout, text: str) -> list[int]:
    """With any tokens in the place of marks."""
    ids: list[int] = []
    for piece in re.split(f"({_ROW}+)", text):
        is_rows = piece.startswith(_ROW)
        ids += [layout.image_token_id] * len(piece) if is_rows else _some_text(1 if piece else 0)
    return ids


def _some_text(num_tokens: int) -> list[int]:
    found: list[int] = torch.randint(_TEXT_IDS.start, _TEXT_IDS.stop, (num_tokens,)).tolist()
    return found
