"""From a transformer's output to one vector per text: pooling, dense layers, length 1."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from inference.encoder_layout import read_json_object
from inference.errors import ModelRefused

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
}


def pooled(hidden: Tensor, mask: Tensor, modes: tuple[str, ...]) -> Tensor:
    """hidden: (rows, tokens, size); mask: (rows, tokens), True where a token is, padding behind.

    Returns (rows, modes x size) in float32.
    """
    hidden = hidden.float()
    kept = mask.unsqueeze(-1)  # (rows, tokens, 1)
    return torch.cat([_POOLED_BY[mode](hidden, kept) for mode in modes], dim=-1)


def _first(hidden: Tensor, kept: Tensor) -> Tensor:
    return hidden[:, 0]


def _last(hidden: Tensor, kept: Tensor) -> Tensor:
    last = kept.sum(1) - 1  # (rows, 1)
    return hidden.gather(1, last.unsqueeze(-1).expand(-1, 1, hidden.shape[-1])).squeeze(1)


def _max(hidden: Tensor, kept: Tensor) -> Tensor:
    return hidden.masked_fill(~kept, -torch.inf).amax(1)


def _mean(hidden: Tensor, kept: Tensor) -> Tensor:
    return (hidden * kept).sum(1) / kept.sum(1)


def _mean_by_root(hidden: Tensor, kept: Tensor) -> Tensor:
    return (hidden * kept).sum(1) / kept.sum(1).sqrt()


def _weighted_mean(hidden: Tensor, kept: Tensor) -> Tensor:
    """Later tokens of a decoder have seen more, and count by their position."""
    weights = kept * torch.arange(1, hidden.shape[1] + 1).view(1, -1, 1)
    return (hidden * weights).sum(1) / weights.sum(1)


_POOLED_BY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": _first,
    "lasttoken": _last,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
}


def unit(vectors: Tensor) -> Tensor:
    return nn.functional.normalize(vectors, dim=-1)


def load_dense(directory: Path) -> nn.Module:
    """A layer behind the pooling, from a sentence-transformers directory. Raises ModelRefused."""
    config = read_json_object(directory / "config.json")
    name = str(config.get("activation_function") or "torch.nn.modules.activation.Tanh")
    activation = _ACTIVATIONS.get(name.rpartition(".")[2])
    if activation is None:
        raise ModelRefused(f"{directory.name} has an activation {name}, which is not supported.")
    try:
        linear = nn.Linear(config["in_features"], config["out_features"], config.get("bias", True))
        tensors: dict[str, Any] = load_file(directory / "model.safetensors")
        linear.load_state_dict(
            {key.removeprefix("linear."): tensor.float() for key, tensor in tensors.items()}
        )
    except Exception as error:  # safetensors raises an error of its own class
        raise ModelRefused(f"{directory.name} does not load: {error}") from error
    return nn.Sequential(linear, activation()).eval()
