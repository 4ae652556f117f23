"""Where an adapter's matrices belong in a loaded model, and the matrices themselves. Imports torch."""

from dataclasses import dataclass

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from inference.adapter_files import AdapterFiles, LowRank
from inference.errors import ModelRefused
from inference.int8 import Follower, Lead
from inference.int8_linear import Int8Linear
from inference.vision.parts import EYES, TEXT_PARTS

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Place:
    """Which layer computes what an adapter changes, and which of its outputs are meant: several of the
    model's layers may be one product (`int8`)."""

    module: nn.Module
    columns: slice
    num_inputs: int


def places_of(files: AdapterFiles, model: nn.Module) -> dict[str, Place]:
    """By the paths in the adapter. Raises ModelRefused where a layer is not in the model, or of another
    shape, and where the adapter lacks one that it has to change."""
    modules = dict(model.named_modules())
    places, known = {}, set()
    for path, low in files.layers.items():
        own_path = next((own for own in spellings(path) if own in modules), None)
        if own_path is None and not set(EYES).isdisjoint(path.split(".")):
            raise ModelRefused(
                f"The adapter changes what the model sees with ({path}): only layers that read tokens"
                " are served with adapters."
            )
        if own_path is None:
            raise ModelRefused(f"The adapter is for another model: this one has no layer {path}.")
        places[path] = place = place_of(path, modules[own_path])
        known.add(own_path)
        _check_shape(path, low, place)
    for own_path in modules:
        is_target = any(f".{own_path}".endswith(f".{target}") for target in files.targets)
        if is_target and own_path not in known:
            raise ModelRefused(f"The adapter is incomplete: it has nothing for {own_path}.")
    return places


def spellings(path: str) -> tuple[str, ...]:
    """An adapter that was trained on a model for pictures as well names the text model in it."""
    without = ".".join(part for part in path.split(".") if part not in TEXT_PARTS)
    return path, without, f"model.{without}"


def place_of(path: str, module: nn.Module) -> Place:
    """Raises ModelRefused for what is no linear layer, or sees other rows than a step has."""
    if path.rpartition(".")[2] == "lm_head":  # it computes the last tokens only
        raise ModelRefused("The adapter changes the layer in front of the logits (lm_head).")
    match module:
        case Lead():
            return Place(module.joined, slice(0, module.out_features), module.in_features)
        case Follower():
            start = sum(module.lead.sizes[: module.index])
            columns = slice(start, start + module.out_features)
            return Place(module.lead.joined, columns, module.in_features)
        case nn.Linear() | Int8Linear():
            return Place(module, slice(0, module.out_features), module.in_features)
        case Conv1D():
            num_inputs, num_outputs = module.weight.shape
            return Place(module, slice(0, num_outputs), num_inputs)
    raise ModelRefused(f"The adapter changes {path}, which is no linear layer.")


def _check_shape(path: str, low: LowRank, place: Place) -> None:
    num_outputs = place.columns.stop - place.columns.start
    if (place.num_inputs, num_outputs) != (low.num_inputs, low.num_outputs):
        raise ModelRefused(
            f"The adapter is for another model: its {path} has {low.num_inputs} inputs and"
            f" {low.num_outputs} outputs, this model's {place.num_inputs} and {num_outputs}."
        )


def read_pairs(files: AdapterFiles, dtype: torch.dtype, device: torch.device) -> dict[str, Pair]:
    """A (rank, inputs) and scale · B (outputs, rank) of each layer. Raises ModelRefused."""
    pairs = {}
    try:
        with safe_open(files.weights, framework="pt", device=str(device)) as file:
            for path, low in files.layers.items():
                a, b = file.get_tensor(low.a), file.get_tensor(low.b)
                pairs[path] = a.to(dtype), (b.float() * low.scale).to(dtype)
    except (SafetensorError, OSError) as error:
        raise ModelRefused(f"The adapter's weights do not load: {error}") from error
    for path, pair in pairs.items():
        if not all(matrix.isfinite().all() for matrix in pair):
            raise ModelRefused(f"The adapter's weights of {path} are no numbers (NaN or infinite).")
    return pairs
