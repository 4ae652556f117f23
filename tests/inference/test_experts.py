"""Mixtures of experts: who else is in a step changes no answer, and odd sizes run as well."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from inference.experts import set_experts_implementation
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from tests.inference.loops import PROMPTS, answers, make_loop, request
from tests.inference.tiny_models import make_model

MODELS: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "gpt_oss": {"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": 16},
    "deepseek_v3": {
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "kv_lora_rank": 32,
        "q_lora_rank": 32,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 16,
        "v_head_dim": 24,
        "num_key_value_heads": 4,
    },
}


@pytest.mark.parametrize("model_type", MODELS)
def test_a_batch_answers_as_each_one_alone(model_type: str, tmp_path: Path) -> None:
    loop = make_loop(make_model(tmp_path / model_type, model_type, **MODELS[model_type]))
    requests = [request(str(i), p) for i, p in enumerate(PROMPTS)]
    alone = [answers(loop, one)[0] for one in requests]
    assert answers(loop, *requests) == alone
    assert len({tuple(answer) for answer in alone}) == len(alone), "each prompt counts"


@pytest.mark.parametrize(("size", "expected"), [(32, "grouped_mm"), (30, "eager")])
def test_experts_of_any_size_run(size: int, expected: str) -> None:
    """30 numbers of float32 are 120 bytes, which grouped_mm does not take."""
    settings = {**MODELS["qwen3_moe"], "moe_intermediate_size": size, "hidden_size": 64}
    config = AutoConfig.for_model("qwen3_moe", num_hidden_layers=2, vocab_size=320, **settings)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    set_experts_implementation(model)
    assert model.config._experts_implementation == expected
    assert packed_error(config) < MAX_RELATIVE_ERROR / 5


def test_a_model_without_experts_is_left_alone() -> None:
    config = AutoConfig.for_model("qwen3", num_hidden_layers=1, hidden_size=64, vocab_size=320)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    before = model.config.to_dict()
    set_experts_implementation(model)
    assert model.config.to_dict() == before
