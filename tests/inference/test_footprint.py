"""What a model keeps is measured: transformers' own cache holds as much, if we count it by hand."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, PretrainedConfig
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from inference import ModelTooLarge, attention
from inference.assembly import make_kv
from inference.footprint import Footprint, measure_footprint
from inference.hybrid_kv import HybridKV
from inference.loader import load_model
from inference.small_config import shrink
from tests.inference.conftest import engine_config
from tests.inference.test_architectures import LATENT, SERVED, config_of
from tests.inference.tiny_models import make_model

# transformers caches what keys and values are computed from, and computes them at each step again.
COMPRESSED = {*LATENT, "bailing_hybrid", "kimi_linear"}
REPEATED = {"jetmoe"}  # its keys are repeated for each expert behind transformers' cache
NUM_TOKENS = 8  # within every window


def measured(small: PretrainedConfig) -> tuple[Footprint, Footprint]:
    """What we keep, and what transformers keeps: (ours, theirs)."""
    model: Any = AutoModelForCausalLM.from_config(small, dtype=torch.float32)  # type: ignore[no-untyped-call]
    cache = DynamicCache(config=small)
    name = {"cache_params", "past_key_values"} & set(inspect.signature(model.forward).parameters)
    ids = torch.arange(3, 3 + NUM_TOKENS)[None]
    with torch.inference_mode():
        model.eval()(input_ids=ids, use_cache=True, **{name.pop(): cache})
    pairs = [
        (getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in cache.layers
    ]
    kv_bytes = sum(t.nbytes for pair in pairs for t in pair if t is not None)
    stateful = [lay for lay in cache.layers if isinstance(lay, LinearAttentionCacheLayerMixin)]
    states = [s for lay in stateful for s in lay.conv_states.values()]
    states += [s for lay in stateful for s in lay.recurrent_states.values()]
    state_bytes = sum(s.nbytes for s in states if s is not None)
    model.set_attn_implementation(attention.NAME)
    theirs = Footprint(kv_bytes // NUM_TOKENS, state_bytes if stateful else None)
    return measure_footprint(model, small), theirs


@pytest.mark.parametrize("model_type", sorted({*SERVED} - COMPRESSED - REPEATED))
def test_we_keep_what_transformers_keeps(model_type: str) -> None:
    ours, theirs = measured(shrink(config_of(model_type)))
    assert ours == theirs


@pytest.mark.parametrize("model_type", sorted(COMPRESSED))
def test_of_latent_attention_we_keep_the_keys_and_values(model_type: str) -> None:
    small = shrink(config_of(model_type))
    ours, theirs = measured(small)
    per_head = small.qk_nope_head_dim + small.qk_rope_head_dim + small.v_head_dim
    kinds = getattr(small, "layer_types", None) or ["full_attention"] * small.num_hidden_layers
    num_layers = sum(kind == "full_attention" for kind in kinds)
    assert ours.kv_bytes_per_token == num_layers * small.num_attention_heads * per_head * 4
    assert ours.state_bytes == theirs.state_bytes


def _load(path: Path) -> Any:
    return load_model("tiny", path, lambda phase, fraction: None, torch.float32)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrid") / "lfm2"
    return make_model(path, "lfm2", layer_types=["conv", "full_attention", "conv"])


def test_states_keys_and_values_stay_within_the_memory(hybrid: Path) -> None:
    loaded = _load(hybrid)
    kv_bytes_per_token, state_bytes = 2 * 2 * 16 * 4, 2 * 64 * 3 * 4
    assert loaded.footprint == Footprint(kv_bytes_per_token, state_bytes)
    kv = make_kv(loaded, engine_config(hybrid))
    assert isinstance(kv, HybridKV)
    assert kv.states.num_slots == 16
    used = kv.capacity_tokens * kv_bytes_per_token + 3 * 16 * state_bytes
    assert 64 * 2**20 - kv_bytes_per_token < used <= 64 * 2**20


def test_where_memory_is_short_fewer_run_at_once(hybrid: Path) -> None:
    loaded = _load(hybrid)
    large = replace(loaded, footprint=Footprint(1024, state_bytes=4 * 2**20))
    kv = make_kv(large, engine_config(hybrid))
    assert isinstance(kv, HybridKV)
    assert kv.states.num_slots == 2
    assert kv.capacity_tokens == 40 * 1024


def test_no_room_for_a_state_is_said(hybrid: Path) -> None:
    loaded = _load(hybrid)
    large = replace(loaded, footprint=Footprint(1024, state_bytes=64 * 2**20))
    with pytest.raises(ModelTooLarge, match="a state for each sequence"):
        make_kv(large, engine_config(hybrid))
