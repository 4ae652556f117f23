"""Architectures of transformers that are served, and those that would be wrong and are refused.

Each is tried as at load time: a small copy with random weights reads prompts packed, in chunks and mixed
with decoding over our cache, and must say what it says by itself.
"""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig, PretrainedConfig

from inference import ModelRefused, attention
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, check_architecture, packed_error
from inference.slot_states import has_states
from inference.small_config import shrink

# What config.json always says, where the config class's own defaults make no whole model.
_SETTINGS: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "gemma4_text": {
        "num_kv_shared_layers": 12,
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 2,
    },
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 8, "moe_topk": 2},
    "lfm2": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2},
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "granitemoehybrid": {"layer_types": (["linear_attention"] * 7 + ["full_attention"]) * 4},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}


def _names(text: str) -> list[str]:
    return text.split()


DENSE = _names("""
    apertus arcee biogpt bitnet cohere ctrl cwm ernie4_5 fuyu gemma glm glm4 gpt2 gpt_bigcode
    gpt_neox granite helium hunyuan_v1_dense hyperclovax internlm3 jais2 llama modernbert-decoder
    moshi nanochat olmo olmo2 opt persimmon phi phi3 qwen2 qwen3 seed_oss smollm3 vaultgemma
""")
DROP_KEYWORDS = ["stablelm", "nemotron"]  # the reason for attention's context object
SLIDING_WINDOW = _names("""
    afmoe cohere2 exaone4 gemma3_text gemma4_text granite_swa ministral ministral3 mistral olmo3
    starcoder2
""")
SOFTCAP = ["gemma2"]
SINKS = ["gpt_oss", "mimo_v2_flash"]
SHARED_KEYS = ["gemma3n_text", "gemma4_text"]  # the last layers take the keys of earlier ones
LATENT = _names("""
    axk1 deepseek_v2 deepseek_v3 glm4_moe_lite longcat_flash minicpm3 youtu
""")  # value heads of another size than key heads
EXPERTS = _names("""
    aria_text cohere2_moe dots1 ernie4_5_moe exaone_moe flex_olmo glm4_moe granitemoe
    granitemoeshared hunyuan_v1_moe hy_v3 jetmoe minimax_m2 mixtral olmoe phimoe qwen2_moe
    qwen3_moe solar_open
""")
STATES = _names("""
    bailing_hybrid bamba falcon_h1 granitemoehybrid kimi_linear lfm2 lfm2_moe lfm3 mamba2
    nemotron_h olmo_hybrid qwen3_5_moe_text qwen3_5_text qwen3_next zaya
""")  # linear attention, state spaces or short convolutions, alone or beside attention
ATTENTION = {*DENSE, *DROP_KEYWORDS, *SLIDING_WINDOW, *SOFTCAP, *SINKS, *SHARED_KEYS, *LATENT}
SERVED = sorted({*ATTENTION, *EXPERTS, *STATES})

_OTHERWISE = "computes something else over Vitrine's KV cache"
_BY_ITSELF = r"layers \[0, 1.*\] did not attend over the cache"
_NOT_AT_ALL = "does not run over Vitrine's KV cache"
REFUSED = {
    "llama4_text": _OTHERWISE,  # chunks of attention that are told by the mask only
    "diffllama": _OTHERWISE,  # two values per head
    "deepseek_v4": _OTHERWISE,  # attends over compressed keys
    "bert": _OTHERWISE,  # looks ahead
    "bloom": _BY_ITSELF,  # positions by a bias on the scores
    "mpt": _BY_ITSELF,
    "falcon": _BY_ITSELF,
    "gptj": _BY_ITSELF,
    "codegen": _BY_ITSELF,
    "gpt_neo": _BY_ITSELF,
    "rwkv": _BY_ITSELF,
    "mamba": _OTHERWISE,  # forgets its state where a prompt comes in chunks
    "falcon_mamba": _OTHERWISE,
    "jamba": _OTHERWISE,
    "recurrent_gemma": _BY_ITSELF,  # keeps its states in its layers
    "deepseek_v32": _NOT_AT_ALL,  # picks the keys it attends to
    "inkling_text": _NOT_AT_ALL,  # asks the cache for masks
    "minimax": _NOT_AT_ALL,  # lightning attention, over a cache of its own
}


def config_of(model_type: str, **settings: Any) -> PretrainedConfig:
    config: PretrainedConfig = AutoConfig.for_model(
        model_type, **{**_SETTINGS.get(model_type, {}), **settings}
    )
    return config


def test_there_are_fifty_and_more() -> None:
    assert len(SERVED) >= 50


@pytest.mark.parametrize("model_type", SERVED)
def test_a_served_architecture_computes_the_same_over_the_cache(model_type: str) -> None:
    assert packed_error(shrink(config_of(model_type))) < MAX_RELATIVE_ERROR / 5


@pytest.mark.parametrize("model_type", sorted({*SHARED_KEYS, *SOFTCAP, *SINKS, *LATENT, "mistral"}))
def test_layers_of_any_kind_and_size_have_pages(model_type: str) -> None:
    error = packed_error(shrink(config_of(model_type)), PagedKV(64, 256))
    assert error < MAX_RELATIVE_ERROR / 5


@pytest.mark.parametrize("model_type", STATES)
def test_models_with_states_are_told_from_their_config(model_type: str) -> None:
    assert has_states(config_of(model_type))
    assert has_states(shrink(config_of(model_type)))


@pytest.mark.parametrize("model_type", sorted({*ATTENTION, *EXPERTS}))
def test_others_need_no_slots(model_type: str) -> None:
    assert not has_states(config_of(model_type))


@pytest.mark.parametrize("model_type", REFUSED)
def test_an_architecture_that_would_be_wrong_is_refused_with_a_reason(model_type: str) -> None:
    with pytest.raises(ModelRefused, match=REFUSED[model_type]) as caught:
        check_architecture(config_of(model_type))
    assert f"rchitecture '{model_type}'" in str(caught.value)


@pytest.mark.parametrize(
    ("model_type", "ignored"),
    [
        ("gemma2", "softcap"),
        ("gpt_oss", "s_aux"),
        ("mistral", "sliding_window"),
        ("gemma3_text", "sliding_window"),
        ("granite", "scaling"),
    ],
)
def test_what_an_architecture_asks_of_attention_is_seen_to(
    model_type: str, ignored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the error is far beyond the limit: the proof would find it missing."""

    def deaf(*args: Any, **kwargs: Any) -> Any:
        return attention.attention(*args, **{**kwargs, ignored: None})

    monkeypatch.setitem(attention.AttentionInterface._global_mapping, attention.NAME, deaf)
    assert packed_error(shrink(config_of(model_type))) > 20 * MAX_RELATIVE_ERROR


@pytest.mark.parametrize("model_type", SERVED)
def test_a_small_copy_has_every_kind_of_layer(model_type: str) -> None:
    config = config_of(model_type)
    small = shrink(config)
    assert small.num_hidden_layers <= (10 if model_type == "bamba" else 6)
    for name in ("layer_types", "mlp_layer_types"):
        kinds = getattr(config, name, None)
        if kinds and len(kinds) == config.num_hidden_layers:
            assert set(getattr(small, name)) == set(kinds)
    if getattr(config, "num_kv_shared_layers", 0):
        assert 0 < small.num_kv_shared_layers < small.num_hidden_layers


@pytest.mark.parametrize("model_type", ["qwen3_moe", "deepseek_v3", "gemma4_text"])
def test_a_small_copy_is_small_and_the_config_is_left_alone(model_type: str) -> None:
    from transformers import AutoModelForCausalLM

    config = config_of(model_type)
    before = config.to_dict()
    model: nn.Module = AutoModelForCausalLM.from_config(shrink(config), dtype=torch.float32)
    assert sum(p.numel() for p in model.parameters()) < 1_000_000
    assert config.to_dict() == before
