"""Layers that are one call give the very values of their parts, whatever a step holds."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from inference import attention, int8
from inference.fusing import fuse
from inference.kv_cache import SlabKV
from inference.model_runner import ModelRunner
from inference.native.kernels import kernels
from inference.selftest import run_packed
from inference.spans import Span

pytestmark = pytest.mark.skipif(kernels() is None, reason="there are no kernels here")
NUM_LAYERS = 2


def tiny(kind: str, dtype: torch.dtype = torch.bfloat16, bits: int = 8, **others: Any) -> nn.Module:
    config = AutoConfig.for_model(
        kind,
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=NUM_LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        vocab_size=320,
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
        **others,
    )
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    model.set_attn_implementation(attention.NAME)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    int8.quantize(model, bits)
    fuse(model)
    return model


def fused_layers(model: Any) -> list[Any]:
    return [layer for layer in model.model.layers if "forward" in layer.__dict__]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_prompts_read_in_chunks_beside_each_other_give_the_same_logits(
    kind: str, bits: int, dtype: torch.dtype
) -> None:
    """Some so long that their slabs grow on the way."""
    model = tiny(kind, dtype, bits)
    assert len(fused_layers(model)) == NUM_LAYERS
    prompts = [torch.randint(3, 320, (n,)).tolist() for n in (37, 5, 150, 70)]

    def run() -> list[tuple[int, int, torch.Tensor]]:
        return run_packed(ModelRunner(model, SlabKV(1024, 256)), prompts)

    found = run()
    for layer in fused_layers(model):
        del layer.__dict__["forward"]
    for (_, _, logits), (_, _, expected) in zip(found, run(), strict=True):
        assert torch.equal(logits, expected)


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        ("mistral", {"sliding_window": 4096}),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 0}),
        ("llama", {"hidden_act": "gelu"}),
        ("gemma2", {}),  # softcaps, and more norms
        ("olmo", {"clip_qkv": 2.0}),
        ("cohere", {}),
    ],
)
def test_layers_of_other_kinds_stay_as_they_are(kind: str, others: dict[str, Any]) -> None:
    assert not fused_layers(tiny(kind, **others))


class Limited(nn.Module):
    """As Llama's, but for a limit that usual inputs never reach."""

    def __init__(self, mlp: Any) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = nn.functional.silu(self.gate_proj(x)).clamp(max=50.0)
        result: torch.Tensor = self.down_proj(gate * self.up_proj(x))
        return result


@torch.inference_mode()
def test_a_limit_behind_a_norm_is_not_lost() -> None:
    model: Any = tiny("llama")
    before = [layer.input_layernorm.weight.clone() for layer in model.model.layers]
    for layer in model.model.layers:
        del layer.__dict__["forward"]
        layer.mlp = Limited(layer.mlp)
    fuse(model)
    assert not fused_layers(model)
    now = [layer.input_layernorm.weight for layer in model.model.layers]
    assert all(map(torch.equal, now, before)), "what was tried leaves no trace"


@torch.inference_mode()
def test_who_has_an_adapter_and_who_reads_much_goes_through_the_parts() -> None:
    model: Any = tiny("llama")
    seen: list[int] = []
    model.model.layers[0].self_attn.register_forward_hook(lambda *_: seen.append(1))
    runner = ModelRunner(model, SlabKV(1024, 512))

    def run(num_tokens: int, adapter: str = "") -> int:
        seen.clear()
        name = f"{num_tokens}{adapter}"
        runner.kv.reserve(name, num_tokens)
        span = Span(name, 0, num_tokens, adapter=adapter)
        runner.forward(list(range(num_tokens)), list(range(num_tokens)), [span], [0])
        return len(seen)

    assert (run(1), run(8), run(8, "own"), run(300)) == (0, 0, 1, 1)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_places_are_those_of_the_slabs(lengths: list[int]) -> None:
    """However a sequence grows, what the kernel is told is where its keys and values lie."""
    kv, end, layers = SlabKV(4096, 1024), 0, [0, 3]
    for length in lengths:
        span = Span("one", end, length)
        end += length
        assert kv.reserve("one", end)
        new = torch.empty(2, length, 16)
        address = kv.places(layers, span, (new, new))
        pairs = [kv.with_room(layer, "one", span.start, new, new) for layer in layers]
        told = list((kv._running["one"].places or [])[:])
        assert told == [
            value for k, v in pairs for value in (k.data_ptr(), v.data_ptr(), k.shape[1])
        ]
        assert address
        assert all(room >= end for room in told[2::3])
