"""Linear layers in 8 bits: close to what they stand for, and no row disturbs another."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from inference import Engine, GenerateRequest, SamplingParams, Tokens, int8, int8_linear
from inference.errors import ModelRefused
from inference.int8_linear import NarrowOneDnnLinear, OneDnnLinear
from inference.loader import load_model
from tests.inference.conftest import engine_config

DTYPES = (torch.float32, torch.bfloat16)
ONEDNN = OneDnnLinear if int8.is_sound(OneDnnLinear, 0.02) else NarrowOneDnnLinear


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@given(
    seed=st.integers(0, 2**31),
    magnitude=st.floats(1e-6, 1e6),
    num_rows=st.integers(1, 9),
    dtype=st.sampled_from(DTYPES),
    kind=st.sampled_from([OneDnnLinear, NarrowOneDnnLinear]),
)
def test_rows_come_back_within_half_a_step(
    seed: int, magnitude: float, num_rows: int, dtype: torch.dtype, kind: type[OneDnnLinear]
) -> None:
    rows = (random(num_rows, 64, seed=seed) * magnitude).to(dtype)
    quantized, scales = int8_linear.quantize_rows(rows, kind.zero, kind.largest)
    assert int(quantized.min()) > 0
    assert int(quantized.max()) < 2 * kind.zero
    back = (quantized.float() - kind.zero) * scales.float()
    assert scales.dtype == dtype
    assert ((back - rows.float()).abs() <= scales.float() * 0.501).all()


def test_blocks_are_quantized_like_the_whole() -> None:
    rows = random(300, 700)
    assert rows.numel() > int8_linear._BLOCK_VALUES
    quantized, scales = int8_linear.quantize_rows(rows)
    for row in (0, 93, 94, 299):
        alone, scale = int8_linear.quantize_rows(rows[row : row + 1])
        assert torch.equal(quantized[row : row + 1], alone)
        assert torch.equal(scales[row : row + 1], scale)


def test_this_machine_multiplies_right() -> None:
    assert int8.sound_kind() is not None
    assert int8.is_sound(ONEDNN, 0.04)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_product_is_close(dtype: torch.dtype, has_bias: bool) -> None:
    linear = nn.Linear(96, 50, bias=has_bias, dtype=dtype)
    x = random(2, 7, 96, dtype=dtype)
    with torch.inference_mode():
        found, expected = ONEDNN([linear])(x), linear(x)
    assert found.shape == expected.shape
    assert found.dtype == dtype
    assert (found - expected).float().norm() / expected.float().norm() < 0.02


def test_no_row_disturbs_another() -> None:
    linear = ONEDNN([nn.Linear(96, 50)])
    x = random(8, 96)
    x[3] *= 1000
    with torch.inference_mode():
        together = linear(x)
        alone = torch.cat([linear(x[i : i + 1]) for i in range(8)])
    assert torch.equal(together, alone)


def test_what_is_no_number_stays_none() -> None:
    x = random(3, 96)
    x[1, 5] = float("nan")
    with torch.inference_mode():
        found = ONEDNN([nn.Linear(96, 50)])(x)
    assert found[1].isnan().all()
    assert not found[[0, 2]].isnan().any()
    assert not ONEDNN([nn.Linear(96, 50)])(torch.zeros(1, 96)).isnan().any()


def _tiny(kind: str) -> nn.Module:
    config = AutoConfig.for_model(
        kind,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=320,
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
    )
    torch.manual_seed(0)
    model: nn.Module = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    return model


@pytest.mark.parametrize("make", [ONEDNN, None], ids=["oneDNN", "the quickest"])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "phi3", "gpt_neox", "opt"])
def test_a_quantized_model_says_about_the_same(kind: str, make: int8.Make | None) -> None:
    """With its siblings joined (llama), with biases (qwen2), and with layers of other names."""
    model = _tiny(kind)
    ids = torch.randint(3, 320, (1, 40), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = model(input_ids=ids, use_cache=False).logits
        assert int8.quantize(model, make=make) >= 5
        found = model(input_ids=ids, use_cache=False).logits
    assert (found - expected).norm() / expected.norm() < 0.05
    assert not [n for n, m in model.named_modules() if type(m) is nn.Linear]


def test_siblings_do_not_depend_on_their_order() -> None:
    model = _tiny("llama")
    attention = model.get_submodule("model.layers.0.self_attn")
    x, other = random(5, 64), random(5, 64, seed=1)
    with torch.inference_mode():
        expected = [attention.get_submodule(n)(x) for n in ("v_proj", "q_proj", "k_proj")]
        int8.quantize(model)
        attention.get_submodule("q_proj")(other)
        found = [attention.get_submodule(n)(x) for n in ("v_proj", "q_proj", "k_proj")]
        attention.get_submodule("v_proj")(x)
    for one, two in zip(found, expected, strict=True):
        assert (one - two).norm() / two.norm() < 0.02
    assert attention.get_submodule("q_proj").latest is None, "activations are let go"


def test_what_chooses_experts_stays_exact() -> None:
    block = nn.ModuleDict({"gate": nn.Linear(8, 4), "up": nn.Linear(8, 4)})
    assert int8.quantize(block) == 1
    assert type(block["gate"]) is nn.Linear
    with pytest.raises(ModelRefused, match="no linear layers"):
        int8.quantize(nn.ModuleDict({"gate": nn.Linear(8, 4)}))


def test_a_processor_that_cannot_keeps_the_model_as_it_is(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> str:
        loaded = load_model("tiny", tiny_model, lambda *_: None, torch.float32, bits=8)
        return loaded.info.dtype

    assert load() == "int8"

    def overflowing(quantized: torch.Tensor, *_: object) -> torch.Tensor:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(torch.ops.onednn, "qlinear_pointwise", overflowing)
    monkeypatch.setattr("inference.native.linear.kernels", lambda: None)
    int8.sound_kind.cache_clear()
    try:
        assert load() == "float32"
    finally:
        int8.sound_kind.cache_clear()


@pytest.fixture(params=["int8", "int4"])
async def quantized_engine(
    tiny_model: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Engine]:
    running = Engine(replace(engine_config(tiny_model), dtype=request.param))
    yield running
    await running.close()


async def test_an_engine_answers_in_few_bits(quantized_engine: Engine) -> None:
    params = SamplingParams(max_tokens=20, temperature=0.0, ignore_eos=True)
    request = GenerateRequest("r", "tiny", tuple(range(5, 60)), params)
    updates = [update async for update in quantized_engine.generate(request)]
    assert sum(len(u.ids) for u in updates if isinstance(u, Tokens)) == 20
