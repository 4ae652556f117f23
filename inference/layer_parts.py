"""What a decoder layer of the Llama kind consists of, for those who call it as one. Imports torch."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from inference.int8 import Follower, Lead

_PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj"}
_HEAD_NORMS = {"q_norm", "k_norm"}
FEED_FORWARD = {"gate_proj", "up_proj", "down_proj"}


class Unfit(Exception):
    """A layer has other parts."""


@dataclass(frozen=True, slots=True)
class LayerParts:
    """`query` has keys and values as well, `gates` what they are multiplied with. `norms` stand before
    attention and before the feed-forward network; `head_norms` are of queries and keys, where there are.
    """

    attn: Any
    mlp: Any
    query: Lead
    gates: Lead
    norms: list[nn.Module]
    head_norms: list[nn.Module]

    @classmethod
    def of(cls, layer: Any) -> "LayerParts":
        """Raises Unfit, or AttributeError."""
        if children(layer) != _PARTS:
            raise Unfit
        attn, mlp = layer.self_attn, layer.mlp
        head_norms = children(attn) - _PROJECTIONS
        if head_norms not in (set(), _HEAD_NORMS) or FEED_FORWARD - children(mlp):
            raise Unfit
        if _window(attn) is not None:
            raise Unfit
        return cls(
            attn,
            mlp,
            _lead(attn.q_proj, attn.k_proj, attn.v_proj),
            _lead(mlp.gate_proj, mlp.up_proj),
            [layer.input_layernorm, layer.post_attention_layernorm],
            [attn.q_norm, attn.k_norm] if head_norms else [],
        )


def decoder_layers(model: nn.Module) -> list[Any]:
    """A model's layers of that kind, by the names of their parts; none where the first is another."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m)]
    return next((list(m) for m in lists if children(m[0]) == _PARTS), [])


def children(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def norm_weight(norm: nn.Module) -> nn.Parameter:
    """(width,). Raises Unfit."""
    weight = getattr(norm, "weight", None)
    if not isinstance(weight, nn.Parameter) or weight.dim() != 1 or not weight.is_contiguous():
        raise Unfit
    return weight


def epsilon(norm: nn.Module) -> float:
    """Raises Unfit."""
    found = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    if not isinstance(found, float):
        raise Unfit
    return found


def _lead(first: nn.Module, *others: nn.Module) -> Lead:
    if not isinstance(first, Lead) or len(first.sizes) != 1 + len(others):
        raise Unfit
    if not all(isinstance(other, Follower) and other.lead is first for other in others):
        raise Unfit
    return first


def _window(attn: Any) -> int | None:
    """How far its tokens look back: farther than is tried, so that a wrong one would not show."""
    place = attn if hasattr(attn, "sliding_window") else attn.config
    window: int | None = getattr(place, "sliding_window", None)
    return window
