"""Checkpoints in the formats of others, written by hand from a model of ours."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

GROUP = 32
_AWQ_COLUMNS = [0, 2, 4, 6, 1, 3, 5, 7]  # which column of eight a word's four bits are of
Written = tuple[dict[str, Tensor], Tensor]
"""The tensors of a layer, by the ends of their names, and the weight that they stand for."""


def requantize(
    source: Path, target: Path, config: dict[str, Any], write: Callable[[Tensor], Written]
) -> dict[str, Tensor]:
    """Write a copy of a model whose projections are quantized; returns its weights as they became."""
    shutil.copytree(source, target)
    before = load_file(source / "model.safetensors")
    tensors, plain = {}, {}
    for name, tensor in before.items():
        if not name.endswith("_proj.weight"):
            tensors[name] = plain[name] = tensor
            continue
        parts, plain[name] = write(tensor)
        layer = name.removesuffix(".weight")
        tensors |= {f"{layer}.{part}": one.contiguous() for part, one in parts.items()}
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    settings = json.loads((target / "config.json").read_text())
    settings["quantization_config"] = config
    (target / "config.json").write_text(json.dumps(settings))
    return plain


def packed(numbers: Tensor, bits: int, dim: int) -> Tensor:
    """int32 words of numbers along `dim`, the first in the lowest bits."""
    per_word = 32 // bits
    words = numbers.long().unflatten(dim, (-1, per_word))
    shape = [1] * words.dim()
    shape[dim + 1] = per_word
    summed = (words << (bits * torch.arange(per_word)).view(shape)).sum(dim + 1)
    return torch.where(summed >= 2**31, summed - 2**32, summed).to(torch.int32)


def grouped(weight: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers (outputs, inputs), scales and zeros (outputs, groups), asymmetric."""
    groups = weight.unflatten(1, (-1, GROUP))
    low, high = groups.amin(-1), groups.amax(-1)
    scales = ((high - low) / (2**bits - 1)).half().float()
    zeros = (-low / scales).round().clamp(1, 2**bits - 1)
    numbers = (groups / scales[..., None] + zeros[..., None]).round().clamp(0, 2**bits - 1)
    return numbers.flatten(1), scales, zeros


def restored(numbers: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
    wide = (one.repeat_interleave(GROUP, 1) for one in (zeros, scales))
    return (numbers - next(wide)) * next(wide)


def awq(weight: Tensor) -> Written:
    numbers, scales, zeros = grouped(weight, 4)

    def words(rows: Tensor) -> Tensor:
        return packed(rows.unflatten(1, (-1, 8))[..., _AWQ_COLUMNS].flatten(1), 4, 1)

    parts = {"qweight": words(numbers.T), "qzeros": words(zeros.T), "scales": scales.T.half()}
    return parts, restored(numbers, scales, zeros)


def gptq(
    weight: Tensor, bits: int = 4, *, is_shuffled: bool = False, is_v2: bool = False
) -> Written:
    """With `is_shuffled`, inputs belong to groups in no order, as with act-order."""
    order = torch.randperm(weight.shape[1]) if is_shuffled else torch.arange(weight.shape[1])
    numbers, scales, zeros = grouped(weight[:, order], bits)
    plain = torch.empty_like(weight)
    plain[:, order] = restored(numbers, scales, zeros)
    in_place = torch.empty_like(numbers)
    in_place[:, order] = numbers
    g_idx = torch.empty(len(order), dtype=torch.int32)
    g_idx[order] = (torch.arange(len(order)) // GROUP).int()
    stored = zeros if is_v2 else zeros - 1
    parts = {
        "qweight": packed(in_place.T, bits, 0),
        "qzeros": packed(stored.T, bits, 1),
        "scales": scales.T.half(),
        "g_idx": g_idx,
    }
    return parts, plain


def fp8_blocks(weight: Tensor, size: int = 48) -> Written:
    """Blocks of which the last may be cut, as of DeepSeek-V3."""
    rows, columns = (-(-count // size) for count in weight.shape)
    scales = torch.empty(rows, columns)
    stored, plain = torch.empty_like(weight).to(torch.float8_e4m3fn), torch.empty_like(weight)
    for row in range(rows):
        for column in range(columns):
            block = (slice(row * size, (row + 1) * size), slice(column * size, (column + 1) * size))
            scales[row, column] = weight[block].abs().max() / 448
            stored[block] = (weight[block] / scales[row, column]).to(torch.float8_e4m3fn)
            plain[block] = stored[block].float() * scales[row, column]
    return {"weight": stored, "weight_scale_inv": scales}, plain


def fp8_rows(weight: Tensor, *, has_one: bool = False) -> Written:
    largest = weight.abs().max() if has_one else weight.abs().amax(1, keepdim=True)
    scales = largest / 448
    stored = (weight / scales).to(torch.float8_e4m3fn)
    parts = {"weight": stored, "weight_scale": scales.clone(), "input_scale": torch.ones(1)}
    return parts, stored.float() * scales


def int8_rows(weight: Tensor) -> Written:
    scales = weight.abs().amax(1, keepdim=True) / 127
    stored = (weight / scales).round().to(torch.int8)
    return {"weight": stored, "weight_scale": scales}, stored.float() * scales


def packed_groups(weight: Tensor, *, has_zeros: bool = False) -> Written:
    numbers, scales, zeros = grouped(weight, 4)
    if not has_zeros:
        zeros = torch.full_like(zeros, 8)
    parts = {
        "weight_packed": packed(numbers, 4, 1),
        "weight_scale": scales,
        "weight_shape": torch.tensor(weight.shape),
    }
    if has_zeros:
        parts["weight_zero_point"] = packed(zeros, 4, 0)
    return parts, restored(numbers, scales, zeros)
