"""RoPE whose factors depend on the longest sequence of a step, kept from mixing neighbours up."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, PretrainedConfig

from inference import (
    Engine,
    Failed,
    Finished,
    GenerateRequest,
    ModelRefused,
    SamplingParams,
    Tokens,
    context_window,
)
from inference.context_window import max_context_tokens
from inference.defaults import read_context_tokens
from inference.selftest import MAX_RELATIVE_ERROR, check_architecture, packed_error
from inference.small_config import shrink
from tests.inference.conftest import engine_config
from tests.inference.tiny_models import make_model

WINDOW = 64
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 8,
    "long_factor": [1.0, 2, 4, 8, 16, 32, 48, 64],
}


def _phi3(**settings: Any) -> PretrainedConfig:
    """As large as Phi-3.5-mini: 96 dimensions per head, 48 factors."""
    factors = [1.0 + i / 4 for i in range(48)]
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 48, "long_factor": factors}
    return AutoConfig.for_model(
        "phi3",
        **{
            "hidden_size": 3072,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "max_position_embeddings": 131072,
            "original_max_position_embeddings": 4096,
            "rope_scaling": rope,
            **settings,
        },
    )


def _phimoe() -> PretrainedConfig:
    """Scales its queries by the longest position as well."""
    factors = {"short_factor": [1.0] * 64, "long_factor": [4.0] * 64}
    scales = {"short_mscale": 1.2, "long_mscale": 1.3, "original_max_position_embeddings": 4096}
    rope = {"rope_type": "longrope", **factors, **scales}
    return AutoConfig.for_model(
        "phimoe", max_position_embeddings=131072, rope_scaling=rope, rope_theta=10000.0
    )


def _llama_dynamic() -> PretrainedConfig:
    rope = {"rope_type": "dynamic", "factor": 4.0}
    return AutoConfig.for_model("llama", max_position_embeddings=8192, rope_scaling=rope)


def _llama_llama3() -> PretrainedConfig:
    rope = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    return AutoConfig.for_model("llama", max_position_embeddings=131072, rope_scaling=rope)


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        (_phi3(), 4096),
        (_phimoe(), 4096),
        (_llama_dynamic(), 8192),
        (_llama_llama3(), 131072),  # its factors are always the same
    ],
    ids=lambda value: getattr(value, "model_type", None),
)
def test_the_context_ends_where_factors_begin_to_change(
    config: PretrainedConfig, tokens: int, tmp_path: Path
) -> None:
    assert max_context_tokens(config) == tokens
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    assert read_context_tokens(tmp_path) == tokens, "before it is loaded"
    assert packed_error(shrink(config)) < MAX_RELATIVE_ERROR / 100


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"rope_scaling": {"type": "su", "original_max_position_embeddings": 4096}}, 4096),
        (
            {
                "original_max_position_embeddings": 2048,
                "rope_scaling": {"type": "longrope", "long_factor": [1.0]},
            },
            2048,
        ),
        (
            {
                "rope_parameters": {
                    "sliding_attention": {"rope_type": "default"},
                    "full_attention": {
                        "rope_type": "longrope",
                        "original_max_position_embeddings": 512,
                    },
                }
            },
            512,
        ),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"rope_scaling": None}, 16384),
    ],
)
def test_files_of_every_age_tell_their_window(
    config: dict[str, Any], tokens: int, tmp_path: Path
) -> None:
    content = {"max_position_embeddings": 16384, **config}
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert read_context_tokens(tmp_path) == tokens


@pytest.mark.parametrize("config", [_phi3(), _phimoe()], ids=lambda value: value.model_type)
def test_the_self_test_would_see_factors_that_change(
    config: PretrainedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if this kind of RoPE were one that nobody has heard of.
    monkeypatch.setattr(context_window, "_BY_LENGTH", ("unheard of",))
    with pytest.raises(ModelRefused, match="computes something else"):
        check_architecture(config)


@pytest.fixture
async def longrope_engine(tmp_path: Path) -> AsyncIterator[Engine]:
    path = make_model(
        tmp_path / "phi",
        "phi3",
        num_key_value_heads=4,
        max_position_embeddings=512,
        original_max_position_embeddings=WINDOW,
        rope_scaling=LONGROPE,
    )
    engine = Engine(engine_config(path))
    yield engine
    await engine.close()


def _request(name: str, num_prompt: int, max_tokens: int) -> GenerateRequest:
    prompt = tuple((7 * i) % 300 + 3 for i in range(num_prompt))
    return GenerateRequest(
        name, "tiny", prompt, SamplingParams(max_tokens, temperature=0, ignore_eos=True)
    )


async def _run(engine: Engine, request: GenerateRequest) -> tuple[list[int], Finished | Failed]:
    updates = [update async for update in engine.generate(request)]
    ids = [i for update in updates if isinstance(update, Tokens) for i in update.ids]
    assert isinstance(updates[-1], Finished | Failed)
    return ids, updates[-1]


async def test_a_long_neighbour_changes_nothing(longrope_engine: Engine) -> None:
    request = _request("short", 30, 30)
    alone, end = await _run(longrope_engine, request)
    assert isinstance(end, Finished)
    (beside, _), (_, fitting), (_, too_long) = await asyncio.gather(
        _run(longrope_engine, request),
        _run(longrope_engine, _request("to the window's end", 40, 100)),
        _run(longrope_engine, _request("behind it", 200, 100)),
    )
    assert beside == alone
    assert len(set(alone)) > 1, "an answer that could change"
    assert isinstance(fitting, Finished)
    assert fitting.usage.completion_tokens == WINDOW - 40
    assert isinstance(too_long, Failed)
    assert too_long.code == "context_length_exceeded"
    assert longrope_engine.context_tokens("tiny") == WINDOW
