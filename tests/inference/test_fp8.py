"""Linear layers in fp8: the arithmetic against float64, by torch's product for the processor."""

import logging
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from inference import Finished, fp8, int8_linear
from inference.device import CPU
from inference.fp8 import Fp8Linear, quantize_rows
from tests.inference.loops import PROMPTS, make_loop, request, run
from tests.inference.test_int8 import random

_HALF_STEP = 2**-4  # of e4m3, relative: three bits of mantissa
_LEAST = 2**-9  # the smallest number above zero


@given(
    seed=st.integers(0, 2**31),
    magnitude=st.floats(1e-6, 1e6),
    num_rows=st.integers(1, 9),
    dtype=st.sampled_from((torch.float32, torch.bfloat16)),
)
def test_rows_come_back_within_half_a_step(
    seed: int, magnitude: float, num_rows: int, dtype: torch.dtype
) -> None:
    rows = (random(num_rows, 64, seed=seed) * magnitude).to(dtype)
    quantized, scales = quantize_rows(rows)
    exact, step = rows.double(), scales.double()
    back = quantized.double() * step
    assert (scales.dtype, scales.shape) == (torch.float32, (num_rows, 1))
    bound = torch.maximum(exact.abs() * _HALF_STEP, step * _LEAST / 2) * (1 + 1e-5)
    assert ((back - exact).abs() <= bound).all()
    assert quantized.double().abs().amax() == fp8.LARGEST


def test_what_is_zero_or_no_number_disturbs_nobody() -> None:
    rows = random(4, 32)
    rows[1] = 0
    rows[2, 5] = torch.nan
    quantized, scales = quantize_rows(rows)
    back = quantized.float() * scales
    assert (back[1] == 0).all()
    assert back[2].isnan().any()
    assert back[[0, 1, 3]].isfinite().all()


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_product_is_that_of_what_was_quantized(has_bias: bool) -> None:
    first, second = nn.Linear(96, 48, bias=has_bias), nn.Linear(96, 16, bias=has_bias)
    layer = Fp8Linear([first, second], torch.float32)
    x = random(2, 7, 96)
    rows, of_rows = quantize_rows(x.reshape(-1, 96))
    weight, of_weight = quantize_rows(torch.cat([first.weight, second.weight]).detach())
    expected = (rows.double() * of_rows) @ (weight.double() * of_weight).t()
    if has_bias:
        expected += torch.cat([first.bias, second.bias]).detach()
    with torch.inference_mode():
        found = layer(x)
    assert found.shape == (2, 7, 64)
    assert found.dtype == torch.float32
    error = (found.reshape(-1, 64) - expected).norm() / expected.norm()
    assert error < 4e-3, "but for bfloat16's rounding"
    exact = torch.cat([first(x), second(x)], -1)
    assert 1e-3 < (found - exact).norm() / exact.norm() < 0.05


def test_no_row_disturbs_another() -> None:
    """Its neighbours' values change nothing of a row; their number may, by bfloat16's rounding, since
    torch sums in another order then."""
    linear = Fp8Linear([nn.Linear(96, 48)])
    x = random(8, 96)
    x[3] *= 1000
    others = random(8, 96, seed=2) * 100
    with torch.inference_mode():
        together = linear(x)
        for i in range(8):
            beside = others.clone()
            beside[i] = x[i]
            assert torch.equal(linear(beside)[i], together[i])
            alone = linear(x[i : i + 1])[0]
            assert torch.allclose(alone, together[i], rtol=2**-7, atol=1e-5 * float(x[i].norm()))


def test_wrong_products_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fp8.problem_on(CPU) == ""
    right = torch._scaled_mm

    def forgetful(*given: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        return right(*given, **{**named, "scale_a": torch.ones_like(named["scale_a"])})

    def missing(*given: object, **named: object) -> torch.Tensor:
        raise RuntimeError("only on devices with compute capability 8.9")

    for broken, word in ((forgetful, "wrong"), (missing, "8.9")):
        monkeypatch.setattr(torch, "_scaled_mm", broken)
        fp8.problem_on.cache_clear()
        assert word in fp8.problem_on(CPU)
    monkeypatch.undo()
    fp8.problem_on.cache_clear()


def test_a_model_takes_half_of_bfloat16s_memory_and_answers(tiny_model: Path) -> None:
    loop = make_loop(tiny_model, dtype="fp8")
    layers = [m for m in loop.runner.model.modules() if isinstance(m, Fp8Linear)]
    assert len(layers) == 3 * 4, "q, k and v are one, and gate and up too"
    vocab_size = loop.runner.model.lm_head.out_features
    assert vocab_size % 16, "lm_head stays as it is, whose size the kernels do not know"
    values = sum(layer.weight.numel() for layer in layers)  # type: ignore[operator, union-attr]
    inside = {id(b) for layer in layers for b in layer.buffers()}
    taken = sum(b.nbytes for b in loop.runner.model.buffers() if id(b) in inside)
    assert values < taken < 1.15 * values
    assert int8_linear.weights_bytes(loop.runner.model) > taken
    requests = [request(f"r{n}", prompt) for n, prompt in enumerate(PROMPTS)]
    told = run(loop, *requests)
    assert all(isinstance(updates[-1], Finished) for updates in told.values())
    loop.check()


def test_a_model_stays_as_it_is_where_products_are_wrong(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fp8, "problem_on", lambda device: "they are wrong by 0.500")
    with caplog.at_level(logging.WARNING):
        loop = make_loop(tiny_model, dtype="fp8")
    assert not any(isinstance(m, Fp8Linear) for m in loop.runner.model.modules())
    assert "tiny has no products of fp8: they are wrong by 0.500" in caplog.text
