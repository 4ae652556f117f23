"""A model that is fused for a GPU says what it said before; the kernels are the interpreter's here."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import LlamaMLP

from inference.fusing import fuse
from inference.gpu import fusing, rows
from inference.gpu.fusing import fuse_checked, fuse_on_device
from inference.int8 import Lead
from tests.inference.test_architectures import config_of
from tests.inference.test_fusing import NUM_LAYERS, difference, logits, plain_rope, tiny

__all__ = ["plain_rope"]  # a fixture that is used by itself

# By the places that are changed: joined projections; norms, gates and, once for all, RoPE.
EXPECTED = {
    "llama": NUM_LAYERS * 5 + NUM_LAYERS * (2 + 1) + 1 + 1,
    "qwen2": NUM_LAYERS * 5 + NUM_LAYERS * (2 + 1) + 1 + 1,  # with biases
    "qwen3": NUM_LAYERS * 5 + NUM_LAYERS * (4 + 1) + 1 + 1,
    # Its norms add one to their weights, and its gate is GELU: neither is ours.
    "gemma2": NUM_LAYERS * 5 + 1,
    "phi3": NUM_LAYERS * 2 + 1 + 1,  # its products are joined already
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", EXPECTED)
def test_fused_models_say_the_same(kind: str, dtype: torch.dtype) -> None:
    model = tiny(kind).to(dtype)
    before = logits(model)
    assert fuse_on_device(kind, model) == EXPECTED[kind]
    limit = 1e-5 if dtype == torch.float32 else 2e-2
    assert difference(logits(model), before) < limit
    assert fuse_on_device(kind, model) < EXPECTED[kind], "nothing is joined twice"


def test_a_product_that_differs_is_not_joined(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny("llama")
    before = logits(model)
    monkeypatch.setattr(fusing, "_relative", lambda found, expected: 0.3)
    assert fuse_on_device("llama", model) == 0
    assert (
        "llama is not fused any further: ValueError: a joined product differs by 3.0" in caplog.text
    )
    assert not any(isinstance(module, Lead) for module in model.modules())
    assert torch.equal(logits(model), before)


def test_a_model_file_that_looks_into_its_layers_is_not_fused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model, config = tiny("llama"), config_of("llama")
    forward = LlamaMLP.forward

    def looking(self: LlamaMLP, x: Tensor) -> Tensor:
        assert self.up_proj.weight.dtype == x.dtype
        return forward(self, x)  # type: ignore[no-untyped-call, no-any-return]

    monkeypatch.setattr(rows, "silu_mul", lambda x: x)  # or the forward is replaced
    assert fuse_checked("llama", model, config) == EXPECTED["llama"] - NUM_LAYERS - 1  # RoPE is
    monkeypatch.setattr(LlamaMLP, "forward", looking)
    assert fuse_checked("other", tiny("llama"), config) == 0
    assert "other is not fused, for a small copy of it fails: AttributeError" in caplog.text


@pytest.mark.parametrize("name", ["rms_norm", "silu_mul", "rotate"])
def test_an_operation_that_is_wrong_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama")
    before = logits(model)
    right = getattr(rows, name)
    monkeypatch.setattr(rows, name, lambda *args: right(*args) * 1.01)
    num_changed = fuse_on_device("llama", model)
    assert 0 < num_changed < EXPECTED["llama"]
    monkeypatch.undo()
    assert difference(logits(model), before) < 1e-5


def test_what_is_fused_for_a_gpu_leaves_processors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """RoPE is replaced for a whole file of models, and a draft model may compute elsewhere."""
    model = tiny("llama")
    before = logits(model)
    fuse_on_device("llama", model)
    monkeypatch.setattr(rows, "is_fit", lambda x: False)  # as for tensors that are not there

    def fails(*args: Any) -> Tensor:
        raise AssertionError("a kernel on a tensor that is elsewhere")

    for name in ("rms_norm", "silu_mul", "rotate"):
        monkeypatch.setattr(rows, name, fails)
    assert difference(logits(model), before) < 1e-5


def test_processors_rows_are_not_a_gpus() -> None:
    """Twice fused is not fused: what is there by now is nobody's norm."""
    model = nn.Sequential(tiny("llama"))
    assert fuse(model, rows) > 0
    assert rows.is_fit(torch.zeros(1))
    assert not rows.is_fit(torch.zeros(1, dtype=torch.float64))
