"""A copy of an architecture that is small enough to be tried in a fraction of a second.

What decides whether our cache computes the same stays: the kinds of layers and their order, groups of
heads, latent attention, windows, RoPE, experts, states. What only makes a model large is cut.
"""

from copy import deepcopy
from typing import Any

from transformers import PretrainedConfig

from inference.context_window import depends_on_length, rope_parameters

VOCAB_SIZE = 320
_MAX_LAYERS = 6
_MAX_FIRST_LAYERS = (
    20  # where a config computes the kinds of its layers, so that none can be left out
)
_ROPE_WINDOW = 32  # shorter than a prompt, so that RoPE which changes with the length is seen
_HEAD_DIM = 16
_OTHER_HEAD_DIM = 32  # of layers whose heads differ from the others'
_Overrides = dict[int | str, dict[str, Any]]  # what single layers have otherwise, by their index

_SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "ffn_hidden_size": 128,
    "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": VOCAB_SIZE,
    "vocab_size": VOCAB_SIZE,
    "num_attention_heads": 4,
    "sliding_window": 16,
    "attention_chunk_size": 16,
    "attn_logit_softcapping": 2.0,  # as near to the small copy's scores as 50 is to a real one's
    # experts
    "moe_intermediate_size": 32,
    "expert_ffn_hidden_size": 32,
    "shared_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32,
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "zero_expert_num": 4,
    "num_experts_per_tok": 2,
    "top_k_experts": 2,
    "moe_topk": 2,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    # multi-head latent attention keeps keys and values in low rank
    "kv_lora_rank": 32,
    "q_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "qk_head_dim": 32,
    # state spaces: heads * head_dim is twice the hidden size
    "mamba_n_heads": 8,
    "mamba_num_heads": 8,
    "mamba_d_head": 16,
    "mamba_head_dim": 16,
    "mamba_d_ssm": 128,
    "mamba_d_state": 16,
    "ssm_state_size": 16,
    "state_size": 16,
    "mamba_dt_rank": 4,
    "time_step_rank": 4,
    "num_heads": 8,
    "mamba_chunk_size": 16,
    "chunk_size": 16,
    "attention_hidden_size": 128,
    "attention_head_dim": 32,
    "mamba_headdim": 16,
    "lru_width": 64,
    # linear attention
    "linear_head_dim": 16,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_num_heads": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}


def shrink(config: PretrainedConfig) -> PretrainedConfig:
    """A copy of the text architecture with a few narrow layers, one of each kind at least."""
    small = deepcopy(config.get_text_config())
    overrides = _take_layer_overrides(small)
    is_grouped = _get(small, "num_key_value_heads", 0) < _get(small, "num_attention_heads", 0)
    is_latent = bool(_get(small, "kv_lora_rank", 0))
    _keep_layers(small, overrides)
    for name, value in _SMALL.items():
        if found := _get(small, name, 0):
            _set(small, name, [value] * len(found) if isinstance(found, list) else value)
    if _get(small, "num_key_value_heads", 0):
        small.num_key_value_heads = 2 if is_grouped and not is_latent else 4
    if _get(small, "head_dim", 0) and not hasattr(small, "attention_head_dim"):
        _set(small, "head_dim", small.qk_rope_head_dim if is_latent else _HEAD_DIM)
    if _get(small, "rotary_dim", 0):
        small.rotary_dim = _HEAD_DIM // 2
    _shrink_rope(small)
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if _get(small, name, None) is not None:
            setattr(small, name, 0)
    if overrides:
        small.per_layer_config = overrides
    return small


def _take_layer_overrides(small: PretrainedConfig) -> _Overrides:
    """Remove and return what single layers have otherwise than the rest, in small sizes."""
    if not small.is_heterogeneous:
        return {}
    sizes = {**_SMALL, "head_dim": _OTHER_HEAD_DIM, "num_key_value_heads": 1}
    overrides: _Overrides = {
        int(layer): {name: sizes.get(name, value) for name, value in own.items()}
        for layer, own in small.to_dict()["per_layer_config"].items()
    }
    small.per_layer_config = None
    return overrides


def _keep_layers(small: PretrainedConfig, overrides: _Overrides) -> None:
    """Leave the first layers, or where those lack a kind of layer, the first one of each kind."""
    num_layers = small.num_hidden_layers
    kinds = _kinds(small, num_layers)
    firsts = sorted({kinds.index(kind) for kind in kinds})
    num_first = min(num_layers, max(2, firsts[-1] + 1))
    kept = list(range(num_first)) if num_first <= _MAX_LAYERS else firsts
    if kept == firsts and not _is_free(small, "layer_types"):
        kept = list(range(min(num_first, _MAX_FIRST_LAYERS)))
    num_shared = _get(small, "num_kv_shared_layers", 0)
    for name, value in list(vars(small).items()):
        if isinstance(value, list) and len(value) == num_layers:
            _set(small, name, [value[layer] for layer in kept])
    small.num_hidden_layers = len(kept)
    if num_shared:
        small.num_kv_shared_layers = sum(layer >= num_layers - num_shared for layer in kept)
    ours = {layer: overrides[layer] for layer in kept if layer in overrides}
    overrides.clear()
    overrides.update({kept.index(layer): own for layer, own in ours.items()})


def _kinds(small: PretrainedConfig, num_layers: int) -> list[tuple[Any, ...]]:
    """What each layer is: how it attends, what follows, and whether it takes another's keys."""
    first_shared = num_layers - _get(small, "num_kv_shared_layers", 0)
    by_layer = [
        listed
        for name in ("layer_types", "mlp_layer_types")
        if len(listed := list(_get(small, name, None) or [])) == num_layers
    ]
    return [
        (layer >= first_shared, *(listed[layer] for listed in by_layer))
        for layer in range(num_layers)
    ]


def _shrink_rope(small: PretrainedConfig) -> None:
    """Fit RoPE's factors to the narrow heads, and its original window to the short prompts."""
    num_heads = _get(small, "num_attention_heads", 1)
    head_dim = _get(small, "head_dim", 0) or small.hidden_size // num_heads
    if _get(small, "original_max_position_embeddings", 0):
        small.original_max_position_embeddings = _ROPE_WINDOW
    # The dicts are the config's own: what is set in them is set in it.
    for rope in rope_parameters({"rope_parameters": getattr(small, "rope_parameters", None)}):
        num_factors = int(head_dim * (rope.get("partial_rotary_factor") or 1)) // 2
        for name in ("short_factor", "long_factor"):
            if name in rope:
                rope[name] = rope[name][:num_factors]
        if sections := rope.get("mrope_section"):  # of frequencies
            parts = [part * (head_dim // 2) // sum(sections) for part in sections]
            rope["mrope_section"] = [head_dim // 2 - sum(parts[1:]), *parts[1:]]
        if "original_max_position_embeddings" in rope:
            rope["original_max_position_embeddings"] = _ROPE_WINDOW
        elif depends_on_length(rope):
            small.max_position_embeddings = _ROPE_WINDOW


def _get(config: PretrainedConfig, name: str, default: Any) -> Any:
    """An attribute under its common name: configs map theirs (n_layer) to it by attribute_map."""
    value = getattr(config, name, None)
    return default if value is None else value


def _set(config: PretrainedConfig, name: str, value: Any) -> None:
    """Set what is not computed from other attributes."""
    if _is_free(config, name):
        setattr(config, name, value)


def _is_free(config: PretrainedConfig, name: str) -> bool:
    own = getattr(type(config), config.attribute_map.get(name, name), None)
    return not isinstance(own, property) or own.fset is not None
