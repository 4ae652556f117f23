"""Proof, at load time, that an architecture computes the same over our KV cache as by itself.

A model can run without an error and still be wrong: masks that carry meaning, layers with a state of
their own, positions that are not what they seem. So a copy of the architecture, shrunk and with
random weights, answers the same prompts twice: by transformers' plain forward, and packed, chunked
and mixed over the cache. Costs a fraction of a second; found every silent fault that we know of.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PretrainedConfig

from inference import attention
from inference.context_window import depends_on_length, max_context_tokens, rope_parameters
from inference.errors import ModelRefused
from inference.kv_cache import SlabKV
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.sequence import Sequence

MAX_RELATIVE_ERROR = 1e-3  # sound architectures stay below 5e-6 in float32, wrong ones above 1e-2
_VOCAB_SIZE = 320
_PROMPT_LENGTHS = (37, 5, 26)
_CHUNK_TOKENS = 16
_MAX_LAYERS = 6
_ROPE_WINDOW = 32  # shorter than a prompt, so that RoPE which changes with the length is seen

_SHRUNK = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "vocab_size": _VOCAB_SIZE,
    "num_attention_heads": 4,
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": 16,
    "attention_chunk_size": 16,
    # multi-head latent attention keeps keys and values in low rank
    "kv_lora_rank": 32,
    "q_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}


def check_architecture(config: PretrainedConfig) -> None:
    """Raise ModelRefused when the architecture would be wrong over our cache."""
    try:
        error = packed_error(shrink(config))
    except Exception as problem:  # whatever a model file raises, the answer is the same
        raise ModelRefused(
            f"The architecture '{config.model_type}' does not run over Vitrine's KV cache:"
            f" {type(problem).__name__}: {problem}"
        ) from problem
    if not error <= MAX_RELATIVE_ERROR:
        raise ModelRefused(
            f"The architecture '{config.model_type}' computes something else over Vitrine's KV cache"
            f" than by itself (relative error {error:.1e}), so its answers would be wrong."
        )


def shrink(config: PretrainedConfig) -> PretrainedConfig:
    """A copy of the architecture with a few narrow layers, one of each kind at least."""
    small = deepcopy(config.get_text_config())
    is_grouped = _get(small, "num_key_value_heads", 0) < small.num_attention_heads
    is_latent = bool(_get(small, "kv_lora_rank", 0))
    for name, value in _SHRUNK.items():
        if _get(small, name, 0):
            setattr(small, name, value)
    if _get(small, "num_key_value_heads", 0):
        small.num_key_value_heads = 2 if is_grouped and not is_latent else 4
    if _get(small, "head_dim", 0):
        small.head_dim = small.qk_rope_head_dim if is_latent else 16
    layer_types = list(_get(small, "layer_types", None) or [])
    small.num_hidden_layers = min(small.num_hidden_layers, _layers_for_all_kinds(layer_types))
    if layer_types:
        small.layer_types = layer_types[: small.num_hidden_layers]
    _shrink_rope(small)
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if _get(small, name, None) is not None:
            setattr(small, name, 0)
    return small


def _shrink_rope(small: PretrainedConfig) -> None:
    """Fit RoPE's factors to the narrow heads, and its original window to the short prompts."""
    head_dim = _get(small, "head_dim", 0) or small.hidden_size // small.num_attention_heads
    if _get(small, "original_max_position_embeddings", 0):
        small.original_max_position_embeddings = _ROPE_WINDOW
    # The dicts are the config's own: what is set in them is set in it.
    for rope in rope_parameters({"rope_parameters": getattr(small, "rope_parameters", None)}):
        num_factors = int(head_dim * (rope.get("partial_rotary_factor") or 1)) // 2
        for name in ("short_factor", "long_factor"):
            if name in rope:
                rope[name] = rope[name][:num_factors]
        if "original_max_position_embeddings" in rope:
            rope["original_max_position_embeddings"] = _ROPE_WINDOW
        elif depends_on_length(rope):
            small.max_position_embeddings = _ROPE_WINDOW


def _get(config: PretrainedConfig, name: str, default: Any) -> Any:
    """An attribute under its common name: configs map theirs (n_layer) to it by attribute_map."""
    value = getattr(config, name, None)
    return default if value is None else value


def _layers_for_all_kinds(layer_types: list[str]) -> int:
    """How many layers from the first on contain every kind of layer; at least two."""
    firsts = [layer_types.index(kind) + 1 for kind in set(layer_types)]
    return max([2, *firsts]) if max([2, *firsts]) <= _MAX_LAYERS else _MAX_LAYERS


@torch.inference_mode()
def packed_error(config: PretrainedConfig) -> float:
    """The largest relative difference of any last-token logits, packed against plain; may be NaN.

    Raises RuntimeError when a layer did not attend over the cache.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32
        ).eval()
        longest = max_context_tokens(config)
        lengths = [min(n, longest) for n in _PROMPT_LENGTHS]
        prompts = [torch.randint(3, _VOCAB_SIZE, (n,)).tolist() for n in lengths]
    plain = [model(input_ids=torch.tensor([p]), use_cache=False).logits[0] for p in prompts]
    model.set_attn_implementation(attention.NAME)
    runner = ModelRunner(model, SlabKV(capacity_tokens=1024, max_context_tokens=256))
    packed = _run_packed(runner, prompts)
    if unseen := set(range(config.num_hidden_layers)) - runner.layers_seen:
        raise RuntimeError(f"layers {sorted(unseen)} did not attend over the cache")
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


def worst_error(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The largest relative error of (found, expected); NaN if any is NaN, which max() would drop."""
    errors = [(found - expected).abs().max() / expected.abs().max() for found, expected in pairs]
    return float(torch.stack(errors).max())


def _run_packed(runner: ModelRunner, prompts: list[list[int]]) -> list[tuple[int, int, Tensor]]:
    """Feed the prompts in mixed chunks; (prompt, position, logits) wherever a chunk ended."""
    sequences = [
        Sequence(GenerateRequest(str(i), "", (), SamplingParams(max_tokens=1)))
        for i in range(len(prompts))
    ]
    unread = {s.id: list(p) for s, p in zip(sequences, prompts, strict=True)}
    checked: list[tuple[int, int, Tensor]] = []
    while any(unread.values()):
        plan = []
        for sequence in sequences:
            chunk = _next_chunk(unread[sequence.id])
            if chunk:
                sequence.token_ids += chunk
                runner.kv.reserve(sequence.id, len(sequence.token_ids))
                plan.append((sequence, len(chunk)))
        result = runner.run(plan)
        for sequence, row in zip(result.due, result.logits, strict=True):
            checked.append((int(sequence.id), sequence.num_computed - 1, row))
    return checked


def _next_chunk(unread: list[int]) -> list[int]:
    """Take the next tokens of a prompt: chunks at first, the last five one by one as in decoding."""
    num_tokens = min(_CHUNK_TOKENS, len(unread) - 5) if len(unread) > 5 else 1
    chunk, unread[:] = unread[:num_tokens], unread[num_tokens:]
    return chunk
