"""Ordinary weights out of a quantized checkpoint. Imports torch.

Whatever runs such formats as they are needs kernels for one kind of GPU each. Here a weight becomes what
it stands for, once, while it is loaded. Layouts: AutoAWQ's WQLinear_GEMM, AutoGPTQ's QuantLinear,
DeepSeek-V3's weight_dequant, compressed-tensors' pack_to_int32.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from inference.errors import ModelRefused
from inference.quantized import ASIDE, PACKED, Quantization
from inference.weights import weight_files

_AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # where a word of four bits each has the columns
_PARTS = PACKED + ASIDE


def dequantized(path: Path, quantization: Quantization, dtype: torch.dtype) -> dict[str, Tensor]:
    """All tensors of a directory under the names that an unquantized one would have.

    Raises ModelRefused for what does not fit together.
    """
    tensors: dict[str, Tensor] = {}
    layers: dict[str, dict[str, Tensor]] = {}
    for name, tensor in _tensors(path):
        layer, _, part = name.rpartition(".")
        if part in _PARTS or (part == "weight" and _is_small(tensor)):
            layers.setdefault(layer, {})[part] = tensor
        else:
            tensors[name] = tensor.to(dtype) if tensor.is_floating_point() else tensor
    for layer, parts in layers.items():
        if set(parts) <= {"input_scale", "activation_scale"}:
            continue
        try:
            tensors[f"{layer}.weight"] = _weight(parts, quantization).to(dtype)
        except (KeyError, RuntimeError, IndexError) as error:
            raise ModelRefused(
                f"The {quantization.method} weights of {layer} do not fit together: {error}"
            ) from error
    return tensors


def _tensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    for file in weight_files(path):
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118  it is no dictionary
                yield name, opened.get_tensor(name)


def _is_small(tensor: Tensor) -> bool:
    return tensor.dtype in (torch.int8, torch.uint8) or str(tensor.dtype).startswith("torch.float8")


def _weight(parts: dict[str, Tensor], quantization: Quantization) -> Tensor:
    """(outputs, inputs)"""
    match quantization.method:
        case "awq":
            return _of_awq(parts)
        case "gptq":
            return _of_gptq(parts, quantization)
    if "weight_packed" in parts:
        return _of_packed(parts, quantization.bits)
    scale = parts["weight_scale_inv"] if "weight_scale_inv" in parts else parts["weight_scale"]
    zero = parts.get("weight_zero_point")
    weight = parts["weight"].float()
    if zero is not None:
        weight = weight - _spread(zero.float(), weight.shape, quantization.block)
    return weight * _spread(scale.float(), weight.shape, quantization.block)


def _of_awq(parts: dict[str, Tensor]) -> Tensor:
    """qweight: (inputs, outputs / 8), qzeros: (groups, outputs / 8), scales: (groups, outputs)."""
    weight, zeros = (_unpacked(parts[name], 4, 1) for name in ("qweight", "qzeros"))
    order = torch.arange(weight.shape[1]).view(-1, 8)[:, _AWQ_ORDER].flatten()
    weight, zeros, scales = weight[:, order], zeros[:, order], parts["scales"].float()
    group = weight.shape[0] // scales.shape[0]
    wide_zeros, wide_scales = (one.repeat_interleave(group, 0) for one in (zeros, scales))
    found: Tensor = ((weight - wide_zeros) * wide_scales).T.contiguous()
    return found


def _of_gptq(parts: dict[str, Tensor], quantization: Quantization) -> Tensor:
    """qweight: (inputs * bits / 32, outputs), qzeros: (groups, outputs * bits / 32), scales: (groups,
    outputs); g_idx: (inputs,), the group of each input where they were not taken in order."""
    bits = quantization.bits
    weight, zeros = _unpacked(parts["qweight"], bits, 0), _unpacked(parts["qzeros"], bits, 1)
    if not quantization.is_v2:
        zeros = (zeros + 1) & (2**bits - 1)
    scales = parts["scales"].float()
    group = weight.shape[0] // scales.shape[0]
    groups = parts["g_idx"].long() if "g_idx" in parts else torch.arange(len(weight)) // group
    found: Tensor = ((weight - zeros[groups]) * scales[groups]).T.contiguous()
    return found


def _of_packed(parts: dict[str, Tensor], bits: int) -> Tensor:
    """weight_packed: (outputs, inputs * bits / 32), moved up by half of the range to be unsigned."""
    outputs, inputs = parts["weight_shape"].tolist()
    half = 2 ** (bits - 1)
    weight = _unpacked(parts["weight_packed"], bits, 1)[:, :inputs].float() - half
    scale = parts["weight_scale"].float()
    groups = torch.arange(inputs) // -(-inputs // scale.shape[1])
    if "weight_g_idx" in parts:
        groups = parts["weight_g_idx"].long()
    if "weight_zero_point" in parts:
        zeros = _unpacked(parts["weight_zero_point"], bits, 0)[:outputs].float() - half
        weight = weight - zeros[:, groups]
    found: Tensor = weight * scale[:, groups]
    return found


def _unpacked(words: Tensor, bits: int, dim: int) -> Tensor:
    """int32 words -> their numbers, the lowest bits first, along `dim`, the first or the second."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    shifts = shifts if dim else shifts[:, None]
    numbers: Tensor = (words.unsqueeze(dim + 1) >> shifts) & (2**bits - 1)
    return numbers.flatten(dim, dim + 1)


def _spread(scale: Tensor, shape: torch.Size, block: tuple[int, int]) -> Tensor:
    """One number for all, one for each row, or one for each block, as large as the weights."""
    if scale.numel() == 1:
        return scale.reshape(1, 1)
    if scale.dim() == 1:
        return scale[:, None]
    for dim, size in enumerate(block):
        if scale.shape[dim] not in (1, shape[dim]):
            scale = scale.repeat_interleave(size, dim).narrow(dim, 0, shape[dim])
    return scale
