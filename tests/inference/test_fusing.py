"""Fused models say what they said before, and what computes something else is left alone."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from inference import fusing, int8
from inference.fusing import fuse
from inference.native.kernels import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="there are no kernels here")
NUM_LAYERS = 2


@pytest.fixture(autouse=True)
def plain_rope() -> Iterator[None]:
    """RoPE is fused for a whole file of models: put back what was there, in files that the test brought
    as well."""
    before = dict(_ropes())
    for file, rope in before.items():
        setattr(file, fusing._ROPE, getattr(rope, "__wrapped__", rope))
    yield
    for file, rope in _ropes():
        setattr(file, fusing._ROPE, before.get(file, getattr(rope, "__wrapped__", rope)))


def _ropes() -> list[tuple[ModuleType, Any]]:
    files = [m for n, m in sys.modules.items() if n.startswith("transformers.models.")]
    return [(file, getattr(file, fusing._ROPE)) for file in files if hasattr(file, fusing._ROPE)]


def tiny(kind: str, **settings: Any) -> nn.Module:
    config = AutoConfig.for_model(
        kind,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=NUM_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=320,
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
        **settings,
    )
    torch.manual_seed(0)
    model: nn.Module = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:  # ones would hide what becomes of them
                parameter.copy_(1 + 0.3 * torch.randn_like(parameter))
    return model


@torch.inference_mode()
def logits(model: nn.Module) -> torch.Tensor:
    ids = torch.randint(3, 320, (1, 40), generator=torch.Generator().manual_seed(1))
    found: torch.Tensor = model(input_ids=ids, use_cache=False).logits.float()
    return found


def difference(one: torch.Tensor, two: torch.Tensor) -> float:
    return float((one - two).norm() / two.norm())


@pytest.mark.parametrize(
    ("kind", "num_fused"),
    [
        ("llama", 2 * NUM_LAYERS + 1 + 1),  # norms, the last one, and RoPE
        ("qwen2", 2 * NUM_LAYERS + 1 + 1),
        ("qwen3", 4 * NUM_LAYERS + 1 + 1),  # of queries and keys, too
        ("mistral", 2 * NUM_LAYERS + 1 + 1),
        ("gemma", 1),  # its norms add one to their weight
        ("cohere", 0),  # its RoPE pairs neighbours, its norms have means
        ("opt", 0),
    ],
)
def test_a_fused_model_says_the_same(kind: str, num_fused: int) -> None:
    model = tiny(kind)
    expected = logits(model)
    assert fuse(model) == num_fused
    assert difference(logits(model), expected) < 1e-5


def test_gates_are_fused_where_they_are_one_product() -> None:
    model = tiny("llama")
    int8.quantize(model)
    expected = logits(model)
    assert fuse(model) == 3 * NUM_LAYERS + 1 + 1
    assert difference(logits(model), expected) < 5e-3
    other = tiny("llama", hidden_act="gelu")
    int8.quantize(other)
    assert fuse(other) == 2 * NUM_LAYERS + 1, "RoPE is already, and gelu is no silu"


def test_in_bfloat16_it_is_as_close_to_float32_as_before() -> None:
    exact = logits(tiny("qwen3"))
    model = tiny("qwen3").bfloat16()
    before = difference(logits(model), exact)
    assert fuse(model)
    assert difference(logits(model), exact) < 1.2 * before


def test_inputs_of_another_kind_go_the_old_way() -> None:
    """A batch of rows and a float64 input, which no kernel is for."""
    model = tiny("qwen3")
    expected = logits(model)
    fuse(model)
    assert difference(logits(model.double()), expected) < 1e-5
    ids = torch.randint(3, 320, (3, 10))
    with torch.inference_mode():
        batch = tiny("qwen3")
        fuse(batch)
        together = batch(input_ids=ids, use_cache=False).logits
        alone = torch.cat([batch(input_ids=row[None], use_cache=False).logits for row in ids])
    assert difference(together, alone) < 1e-5


class Limited(nn.Module):
    """As of DeepSeek V4 or GLM 5: a gated activation within limits that usual inputs never reach."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit
        self.gate_proj, self.up_proj = nn.Linear(64, 128), nn.Linear(64, 128)
        self.down_proj = nn.Linear(128, 64)
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate_proj(x).clamp(max=self.limit)
        up = self.up_proj(x).clamp(min=-self.limit, max=self.limit)
        result: torch.Tensor = self.down_proj(self.act_fn(gate) * up)
        return result


@torch.inference_mode()
def test_limits_are_not_lost() -> None:
    torch.manual_seed(0)
    free, limited = Limited(torch.inf), Limited(10.0)
    models = [nn.ModuleDict({"mlp": mlp}) for mlp in (free, limited)]
    for model in models:
        int8.quantize(model)
    assert [fuse(model) for model in models] == [1, 0]
    x = 100 * torch.randn(3, 64)
    assert limited(x).abs().max() < 100 * 128


@torch.inference_mode()
def test_a_norm_over_more_than_its_weight_is_the_originals_to_refuse() -> None:
    """Not a read beyond the weight's end."""
    model = tiny("llama")
    assert fuse(model)
    with pytest.raises(RuntimeError):
        model.model.norm(torch.randn(1, 4096))
