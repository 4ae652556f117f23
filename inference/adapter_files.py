"""A LoRA adapter on disk, in PEFT's format: what its files say, and whether it can be served. No torch.

For each layer that it changes there are two matrices, A (rank, inputs) and B (outputs, rank), in
adapter_model.safetensors; the layer then computes W·x + scale · B·A·x (Hu et al. 2021, "LoRA", section
4.1). Source of the names: https://huggingface.co/docs/peft/developer_guides/checkpoint.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.adapter_config import Sizes, read_adapter_config
from inference.errors import ModelRefused
from inference.weights import ends_of, read_header

WEIGHTS_FILE = "adapter_model.safetensors"
_PREFIX = "base_model.model."  # of PEFT's wrapper around the model
_TENSOR = re.compile(r"(?P<layer>.+)\.lora_(?P<which>[AB])\.weight")
_ITEMSIZES = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8}
# What tensors may stand for that are neither A nor B of a linear layer, by a part of their names.
_UNSERVED_TENSORS = {
    "lora_embedding_": "has trained embeddings of its own",
    "lora_magnitude_vector": "is one of DoRA, which scales the base's weights as well",
    ".bias": "adds biases",
}


@dataclass(frozen=True, slots=True)
class LowRank:
    """What one layer gets: A (rank, inputs) and B (outputs, rank), by their names in the file."""

    a: str
    b: str
    rank: int
    num_inputs: int
    num_outputs: int
    scale: float


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """A sound adapter. `layers` are by their paths in the base model, `targets` the ends of the paths of
    all layers that it has to change: empty where only the file says which. `revision` changes with the
    files."""

    weights: Path
    layers: dict[str, LowRank]
    targets: tuple[str, ...]
    revision: str

    @property
    def rank(self) -> int:
        """The largest of all layers."""
        return max(low.rank for low in self.layers.values())

    @property
    def num_parameters(self) -> int:
        return sum(n.rank * (n.num_inputs + n.num_outputs) for n in self.layers.values())


def read_adapter(path: Path) -> AdapterFiles:
    """Read an adapter's directory, without its weights. Raises ModelRefused with a sentence."""
    config = read_adapter_config(path)
    file = path / WEIGHTS_FILE
    if not file.is_file():
        raise ModelRefused(
            f"{path} holds no {WEIGHTS_FILE}. Pickled weights (adapter_model.bin) can run code when they"
            " are opened and are never loaded."
        )
    raw, header = read_header(file)
    layers = _read_layers(header, config.sizes)
    digest = hashlib.sha256(config.source.encode() + raw + ends_of(file))
    return AdapterFiles(file, layers, config.targets, digest.hexdigest()[:16])


def _read_layers(header: dict[str, Any], sizes: Sizes) -> dict[str, LowRank]:
    pairs: dict[str, dict[str, str]] = {}
    for name in sorted(header):
        if name == "__metadata__":
            continue
        match = _TENSOR.fullmatch(name)
        if match is None:
            raise ModelRefused(_of_stranger(name))
        pairs.setdefault(match["layer"], {})[match["which"]] = name
    if not pairs:
        raise ModelRefused("The adapter holds no tensors.")
    return {
        layer.removeprefix(_PREFIX): _low_rank(layer, names, header, sizes)
        for layer, names in pairs.items()
    }


def _of_stranger(name: str) -> str:
    for part, problem in _UNSERVED_TENSORS.items():
        if part in name:
            return f"The adapter {problem} ({name}). Vitrine serves plain LoRA."
    return f"The adapter brings {name}, which is no part of a LoRA adapter."


def _low_rank(layer: str, names: dict[str, str], header: dict[str, Any], sizes: Sizes) -> LowRank:
    """Raises ModelRefused unless both matrices are there and are what the config says."""
    if missing := {"A", "B"} - names.keys():
        raise ModelRefused(
            f"The adapter is incomplete: it lacks {layer}.lora_{missing.pop()}.weight."
        )
    rank, num_inputs = _shape(names["A"], header[names["A"]])
    num_outputs, rank_of_b = _shape(names["B"], header[names["B"]])
    own = layer.removeprefix(_PREFIX)
    expected, scale = sizes.of(own)
    if not rank == rank_of_b == expected:
        raise ModelRefused(
            f"The adapter's config says rank {expected} for {own}; its A has {rank}, its B {rank_of_b}."
        )
    return LowRank(names["A"], names["B"], rank, num_inputs, num_outputs, scale)


def _shape(name: str, tensor: dict[str, Any]) -> tuple[int, int]:
    """Of a matrix whose numbers are all there. Raises ModelRefused."""
    match tensor:
        case {
            "shape": [int(num_rows), int(num_columns)],
            "dtype": str(dtype),
            "data_offsets": [int(begin), int(end)],
        } if num_rows > 0 and num_columns > 0:
            if num_rows * num_columns * _ITEMSIZES.get(dtype, 0) == end - begin > 0:
                return num_rows, num_columns
    kind = f"{tensor.get('dtype')} {tensor.get('shape')}"
    raise ModelRefused(f"The adapter's {name} is no matrix of numbers: {kind}.")
