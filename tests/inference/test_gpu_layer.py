"""What a decoder layer is made of on a GPU, and the layer, against plain formulas."""

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm, silu

from inference import attention, fp8, int8
from inference.attention import StepContext
from inference.gpu import attention as gpu_attention
from inference.gpu import few_rows, fusing, layer, norms, quantizing, whole
from inference.gpu.few_rows import MOST_ROWS, Norm, Tile
from inference.gpu.fusing import fuse_checked, fuse_on_device
from inference.gpu.heads import place_heads
from inference.gpu.layer import FusedLayer, fuse_layers
from inference.gpu.paged_step import PagedStep
from inference.paged_kv import PagedKV
from inference.selftest import packed_error
from inference.small_config import shrink
from inference.spans import Span
from inference.whole_linear import WholeLinear
from tests.inference.kernel_cases import BLOCK_TOKENS, DEVICE, JUNK
from tests.inference.test_architectures import config_of
from tests.inference.test_fusing import plain_rope, tiny

__all__ = ["plain_rope"]  # a fixture that is used by itself

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
LIMITS = {torch.float32: 1e-5, BF16: 1e-2}


@pytest.fixture(autouse=True)
def on_the_device() -> Iterator[None]:
    with torch.device(DEVICE):
        yield


@pytest.fixture
def kernels() -> Iterator[None]:
    attention.use_kernels(gpu_attention)
    yield
    attention.use_kernels(None)


def error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return float((found.double() - expected.double()).norm() / expected.double().norm())


# --- products of few rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("num_rows", [1, 2, MOST_ROWS])
@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize("is_gated", [False, True])
def test_a_product_with_what_is_around_it(
    num_rows: int, has_norm: bool, is_gated: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(num_rows)
    x = torch.randn(num_rows, 75).to(dtype)[:, :72]
    weight, bias = torch.randn(42, 72).to(dtype), torch.randn(42).to(dtype)
    num_out = 21 if is_gated else 42
    residual = torch.randn(num_rows, num_out + 5).to(dtype)[:, :num_out]
    norm = Norm(torch.randn(72).to(dtype), 1e-2) if has_norm else None
    found = few_rows.linear(x, weight, bias=bias, norm=norm, residual=residual, is_gated=is_gated)
    rows = x.double()
    if norm is not None:
        rows = rms_norm(rows, (72,), norm.weight.double(), norm.epsilon)
    product = rows @ weight.double().T + bias.double()
    if is_gated:
        product = silu(product[:, :21]) * product[:, 21:]
    assert error(found, product + residual.double()) < LIMITS[dtype]


@pytest.mark.parametrize("num_rows", [1, 5])
@pytest.mark.parametrize("is_gated", [False, True])
def test_weights_in_8_bits_have_a_scale_each(num_rows: int, is_gated: bool) -> None:
    torch.manual_seed(2)
    x, whole = torch.randn(num_rows, 64).to(BF16), torch.randn(48, 64) * 3
    weight, scales = fp8.quantize_rows(whole)
    found = few_rows.linear(x, weight, scales=scales.flatten(), is_gated=is_gated)
    product = x.double() @ (weight.double() * scales.double()).T
    if is_gated:
        product = silu(product[:, :24]) * product[:, 24:]
    assert error(found, product) < LIMITS[BF16]


@pytest.mark.parametrize("tile", [Tile(4, 16, 4, 1), Tile(16, 128, 4, 3), Tile(2, 64, 4, 1)])
def test_tiles_change_nothing(tile: Tile) -> None:
    x, weight = torch.randn(1, 128), torch.randn(16, 128)
    assert error(few_rows.linear(x, weight, tile=tile), x.double() @ weight.double().T) < 1e-6


def test_no_rows_are_no_rows() -> None:
    assert few_rows.linear(torch.randn(0, 16), torch.randn(8, 16)).shape == (0, 8)
    norm = Norm(torch.ones(16), 1e-6)
    assert norms.normed(torch.randn(0, 16), norm).shape == (0, 16)
    assert quantizing.quantize_rows(torch.randn(0, 16), 256, 448.0)[0].shape == (0, 16)


# --- norms and roundings ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LIMITS)
def test_a_norm_is_of_the_sum(dtype: torch.dtype) -> None:
    x, added = torch.randn(3, 50).to(dtype), torch.randn(3, 50).to(dtype)
    norm = Norm(torch.randn(50).to(dtype), 1e-3)
    found, total = norms.normed_sum(x, added, norm)
    if DEVICE.type == "cuda" or dtype == torch.float32:
        assert torch.equal(total, x + added)
    assert error(total, x + added) < LIMITS[dtype]  # the interpreter cuts bfloat16 off
    weight = norm.weight.double()
    assert error(found, rms_norm(total.double(), (50,), weight, norm.epsilon)) < LIMITS[dtype]
    found = norms.normed(x, norm)
    assert error(found, rms_norm(x.double(), (50,), weight, norm.epsilon)) < LIMITS[dtype]


def test_rows_are_rounded_to_8_bits_as_by_torch() -> None:
    rows = torch.randn(5, 100) * torch.tensor([1e-3, 1.0, 40.0, 1e4, 0.0])[:, None]
    found, scales = quantizing.quantize_rows(rows, 256, fp8.LARGEST)
    expected, wanted = fp8.quantize_rows(rows)
    torch.testing.assert_close(scales, wanted)
    assert error(found.float() * scales, expected.float() * wanted) < 1e-3
    assert scales.untyped_storage().nbytes() >= 4 * 256


def test_a_row_that_is_no_numbers_stays_none() -> None:
    rows = torch.ones(3, 20)
    rows[1, 7] = torch.nan
    rows[2] = torch.nan
    found, scales = quantizing.quantize_rows(rows, 256, fp8.LARGEST)
    assert (found.float() * scales).isnan().any(1).tolist() == [False, True, True]


# --- heads ------------------------------------------------------------------------------------------


def placed(
    packed: Tensor, angles: tuple[Tensor, Tensor], head_norms: tuple[Norm, Norm] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(queries, keys, values) of 3, 2 and 2 heads by plain formulas, in float64."""
    parts = packed.double().view(len(packed), 7, -1)
    query, key, value = parts[:, :3], parts[:, 3:5], parts[:, 5:]
    if head_norms:
        shape = query.shape[-1:]
        query, key = (
            rms_norm(part, shape, norm.weight.double(), norm.epsilon)
            for part, norm in zip((query, key), head_norms, strict=True)
        )
    cos, sin = (angle.double()[:, None] for angle in angles)

    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    return turned(query), turned(key), value


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("has_norms", [False, True])
@pytest.mark.parametrize("head_dim", [16, 24])
def test_heads_are_normed_and_turned_and_placed(
    head_dim: int, has_norms: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(head_dim)
    packed = torch.randn(4, 7 * head_dim).to(dtype)
    angles = torch.randn(4, head_dim).to(dtype), torch.randn(4, head_dim).to(dtype)
    head_norms = None
    if has_norms:
        head_norms = (
            Norm(torch.randn(head_dim).to(dtype), 1e-2),
            Norm(torch.randn(head_dim).to(dtype), 1e-3),
        )
    wanted = placed(packed, angles, head_norms)
    pages = [torch.full((3, BLOCK_TOKENS, 2, head_dim), JUNK).to(dtype) for _ in "kv"]
    slots = torch.tensor([40, -1, 3, 17])
    query = place_heads(packed, 3, angles, slots, pages[0], pages[1], head_norms)
    assert error(query, wanted[0]) < LIMITS[dtype]
    is_real = slots >= 0
    for page, part in zip(pages, wanted[1:], strict=True):
        flat = page.flatten(0, 1)
        assert error(flat[slots[is_real]], part[is_real]) < LIMITS[dtype]
        others = [slot for slot in range(len(flat)) if slot not in slots.tolist()]
        assert (flat[others] == torch.tensor(JUNK).to(dtype)).all()


def test_heads_that_are_kept_in_8_bits_are_cut_off() -> None:
    packed = torch.randn(2, 7 * 16).to(BF16)
    packed[0, 3 * 16] = 1e4
    angles = torch.ones(2, 16).to(BF16), torch.zeros(2, 16).to(BF16)
    pages = [torch.zeros(2, BLOCK_TOKENS, 2, 16).to(FP8) for _ in "kv"]
    place_heads(packed, 3, angles, torch.tensor([5, 9]), pages[0], pages[1])
    keys, values = (page.flatten(0, 1)[[5, 9]].float() for page in pages)
    expected = packed.float().view(2, 7, 16)
    torch.testing.assert_close(keys, expected[:, 3:5].clamp(-448, 448), rtol=2**-4, atol=2**-9)
    torch.testing.assert_close(values, expected[:, 5:], rtol=2**-4, atol=2**-9)


# --- layers -----------------------------------------------------------------------------------------


def joined(kind: str, dtype: torch.dtype = torch.float32, **settings: Any) -> Any:
    """A small model whose products and norms are fused, and its layers are not."""
    with torch.device("cpu"):
        model: Any = tiny(kind, **settings).to(dtype)
    model.to(DEVICE).set_attn_implementation(attention.NAME)
    before = attention.kernels_in_use()
    attention.use_kernels(None)
    fuse_on_device(kind, model)
    attention.use_kernels(before)
    return model


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("kind", "dtype"), [("llama", torch.float32), ("qwen2", BF16), ("qwen3", torch.float32)]
)
def test_layers_are_called_as_one(
    kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[float] = []
    find_error = layer._error_of

    def noted(one: FusedLayer, kept_as: torch.dtype | None) -> float:
        errors.append(find_error(one, kept_as))
        return errors[-1]

    monkeypatch.setattr(layer, "_error_of", noted)
    model = joined(kind, dtype)
    assert fuse_layers(model) == 2
    assert all(isinstance(one.forward.__self__, FusedLayer) for one in model.model.layers)
    assert len(errors) == 2
    assert max(errors) <= 1


@pytest.mark.usefixtures("kernels")
def test_a_model_of_fused_layers_says_the_same() -> None:
    """Packed, in chunks and mixed, against transformers' own forward on the processor."""
    with torch.device("cpu"):
        error = packed_error(
            shrink(config_of("qwen3")),
            PagedKV(64, 512),
            DEVICE,
            change=lambda model: fuse_on_device("qwen3", model),
        )
    assert error < 1e-4


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gemma2", {"head_dim": 16}),  # norms behind, and weights to which one is added
        ("mistral", {"sliding_window": 16}),
        ("phi3", {}),  # its projections are one layer
        ("stablelm", {}),  # turns a part of each head, and its norms have means
        ("granite", {"residual_multiplier": 0.999}),  # adds less than it computes
        ("llama", {"hidden_act": "gelu_pytorch_tanh"}),
    ],
)
def test_other_layers_are_left_alone(kind: str, settings: dict[str, Any]) -> None:
    model = joined(kind, **settings)
    assert fuse_layers(model) == 0


@pytest.mark.usefixtures("kernels")
def test_layers_that_are_wrong_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = joined("llama")
    right = few_rows.linear
    monkeypatch.setattr(few_rows, "linear", lambda *a, **k: right(*a, **k) * 1.001)
    assert fuse_layers(model) == 0
    assert "computed part by part: fused, [0, 1] are wrong" in caplog.text


@pytest.mark.usefixtures("kernels")
def test_one_layer_that_is_wrong_is_left_to_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = joined("llama")
    monkeypatch.setattr(layer, "_error_of", lambda one, kept_as: float("nan" if one.number else 0))
    assert fuse_layers(model) == 1
    assert not layer.has_fused_all(model)
    assert isinstance(model.model.layers[0].forward.__self__, FusedLayer)


@pytest.mark.usefixtures("kernels")
def test_layers_are_fused_where_a_small_copy_of_them_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which shows errors that a real model, of 16 bits and narrow weights, would hide."""
    monkeypatch.setattr(fusing, "packed_error", lambda *_, change, **__: change(copy) or 0.0)
    for has_fused in (True, False):
        copy, model = joined("llama"), joined("llama")
        monkeypatch.setattr(layer, "has_fused_all", lambda _, found=has_fused: found)
        fuse_checked("llama", model, model.config)
        one = getattr(model.model.layers[0].forward, "__self__", None)
        assert isinstance(one, FusedLayer) == has_fused


@pytest.mark.usefixtures("kernels")
def test_keys_and_values_are_looked_at_as_they_are_kept() -> None:
    assert fuse_layers(joined("qwen3", BF16), FP8) == 2


def test_without_the_kernels_for_attention_there_are_no_fused_layers() -> None:
    assert fuse_layers(joined("llama")) == 0


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("adapter", ["", "style"])
def test_an_adapter_is_the_parts_affair(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = joined("llama")
    assert fuse_layers(model) == 2
    fused: FusedLayer = model.model.layers[1].forward.__self__
    asked = []
    monkeypatch.setattr(fused, "original", lambda *a, **k: asked.append(1))
    monkeypatch.setattr(fused, "_computed", lambda x, *_: x)
    kv = PagedKV(8, 64)
    assert kv.reserve("0", 3)
    spans = [Span("0", 0, 3, adapter=adapter)]
    context = StepContext(kv, spans, paged=PagedStep.of(kv, spans, DEVICE))
    with attention.in_step(context):
        fused.forward(torch.randn(1, 3, 64), position_embeddings=(torch.ones(1, 3, 16),) * 2)
    assert bool(asked) == bool(adapter)
    fused.forward(torch.randn(1, 3, 64), position_embeddings=(torch.ones(1, 3, 16),) * 2)
    assert len(asked) == 1 + bool(adapter), "outside of a step it is the original's, too"


@pytest.mark.usefixtures("kernels")
def test_layers_of_whole_numbers_are_called_as_one(caplog: pytest.LogCaptureFixture) -> None:
    """One token by the kernels, some with their residuals, and many with weights that are spelt out."""
    with torch.device("cpu"):
        model: Any = tiny("qwen3").to(BF16)
        model.set_attn_implementation(attention.NAME)
        int8.quantize(model, make=partial(WholeLinear, bits=4))
    model.to(DEVICE)
    with caplog.at_level(logging.WARNING):
        assert fuse_layers(model) == 2, caplog.text
    fused: FusedLayer = model.model.layers[0].forward.__self__
    assert fused.most_rows == whole.MOST_ROWS


@pytest.mark.usefixtures("kernels")
@pytest.mark.skipif(bool(fp8.problem_on(DEVICE)), reason="no products of fp8 here")
def test_layers_in_8_bits_are_called_as_one(caplog: pytest.LogCaptureFixture) -> None:
    with torch.device("cpu"):
        model: Any = tiny("qwen3").to(BF16)
    model.set_attn_implementation(attention.NAME)
    int8.quantize(model, make=fp8.Fp8Linear, fits=fp8.fits)
    model.to(DEVICE)
    with caplog.at_level(logging.WARNING):
        assert fuse_layers(model) == 2, caplog.text


@pytest.mark.skipif(bool(fp8.problem_on(DEVICE)), reason="no products of fp8 here")
@pytest.mark.parametrize("num_rows", [1, 4])
@torch.inference_mode()
def test_products_in_8_bits_by_the_kernels(num_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import inference.gpu

    torch.manual_seed(3)
    linear = nn.Linear(64, 48)
    one = fp8.Fp8Linear([linear], torch.float32).to(DEVICE)
    x = torch.randn(num_rows, 64).to(BF16)
    monkeypatch.setattr(fp8, "_kernels_for", lambda x: None)
    by_torch = one(x)
    monkeypatch.setattr(fp8, "_kernels_for", lambda x: inference.gpu)
    by_kernels = one(x)
    assert by_kernels.dtype == by_torch.dtype == torch.float32
    expected = linear(x.float())
    assert error(by_kernels, expected) < max(error(by_torch, expected) * 1.2, 0.05)
