"""Linear layers of whole numbers for GPUs: the numbers, and which kind of weights a device gets."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from inference import attention, few_bits, fp8, int4, int8, whole_linear
from inference.adapter_weights import place_of
from inference.device import CPU
from inference.few_bits import quantize_for
from inference.host_copy import HostCopy
from inference.int8_linear import weights_bytes, whole_rows
from inference.loader import load_model
from inference.native.kernels import kernels
from inference.native.linear import Int4Linear
from inference.whole_linear import WholeLinear, dequantize, problem_on
from tests.inference.test_fusing import tiny
from tests.inference.test_int8 import random

CUDA = torch.device("cuda")
EVERYTHING = slice(None)


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@given(
    num_inputs=st.integers(1, 100),
    num_outputs=st.integers(1, 40),
    seed=st.integers(0, 999),
    bits=st.sampled_from((4, 8)),
)
def test_numbers_are_those_of_the_processors_layers(
    num_inputs: int, num_outputs: int, seed: int, bits: int
) -> None:
    linear = nn.Linear(num_inputs, num_outputs)
    with torch.no_grad():
        linear.weight.copy_(random(num_outputs, num_inputs, seed=seed))
    layer = WholeLinear([linear], bits=bits)
    found = dequantize(layer.weight, EVERYTHING, torch.float32)
    if bits == 4:
        numbers, factors, scales = int4.quantize(linear.weight.detach())
        wide = factors.repeat_interleave(int4.GROUP, 1)[:, :num_inputs]
        expected = numbers * wide * scales[:, None]
    else:
        whole, scales = whole_rows(linear.weight.detach())
        expected = whole * scales[:, None]
    assert torch.equal(found, expected)


def test_pieces_are_parts_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which weights are made whole, and in which they are spelt out."""
    first, second = nn.Linear(50, 170, bias=False), nn.Linear(50, 130)
    at_once = WholeLinear([first, second], bits=4)
    x = random(5, 50)
    with torch.inference_mode():
        expected = at_once(x)
        monkeypatch.setattr(whole_linear, "_QUANTIZED_VALUES", 7 * 50)
        monkeypatch.setattr(whole_linear, "_PIECE_VALUES", 50)
        layer = WholeLinear([first, second], bits=4)
        assert torch.equal(layer.weight.words, at_once.weight.words)
        assert error(layer(x), expected) < 1e-6
        exact = x.double() @ dequantize(layer.weight, EVERYTHING, torch.float64).T
        exact[:, 170:] += second.bias
        assert error(layer(x[None])[0], exact) < 1e-6
    assert layer(x).shape == (5, 300)
    assert layer(x[:0]).shape == (0, 300)


def test_4_bits_take_what_they_say() -> None:
    layer = WholeLinear([nn.Linear(1024, 512, bias=False)], bits=4)
    assert 8 * weights_bytes(layer) == 512 * (1024 * 4.25 + 32)


@pytest.mark.skipif(kernels() is None, reason="this machine has no int4 of its own")
def test_no_more_is_lost_than_on_a_processor() -> None:
    """Of the same weights: inputs have 16 bits here, and 8 there."""
    linear = nn.Linear(512, 96)
    with torch.no_grad():
        linear.weight.copy_(random(96, 512, seed=3))
    x = random(20, 512, seed=4)
    with torch.inference_mode():
        exact = linear(x)
        here = error(WholeLinear([linear], torch.float32, bits=4)(x.bfloat16()), exact)
        there = error(Int4Linear([linear])(x), exact)
    assert 0.05 < here < there * 1.01 < 0.12


def test_a_sleep_moves_the_weights() -> None:
    layer = WholeLinear([nn.Linear(64, 32)], bits=4)
    x = random(3, 64)
    with torch.inference_mode():
        expected, size_bytes = layer(x), weights_bytes(layer)
        copy = HostCopy(layer)
        assert (copy.num_bytes, weights_bytes(layer)) == (size_bytes, 0)
        copy.restore()
        assert torch.equal(layer(x), expected)


def test_an_adapter_finds_its_place() -> None:
    model: Any = tiny("qwen3")
    int8.quantize(model, make=partial(WholeLinear, bits=4))
    attn = model.model.layers[0].self_attn
    place = place_of("self_attn.v_proj", attn.v_proj)
    assert place.module is attn.q_proj.joined
    assert place.columns.stop == attn.q_proj.joined.out_features
    assert isinstance(place_of("self_attn.o_proj", attn.o_proj).module, WholeLinear)


# --- on which device --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [4, 8])
def test_wrong_products_are_found(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problem_on(CPU, bits) == ""

    def linear(x: Tensor, weight: Any, **_: Any) -> Tensor:
        return torch.zeros(len(x), len(weight.scales))

    def broken(*_: Any, **__: Any) -> Tensor:
        raise ValueError("no compiler")

    def faulty(*_: Any, **__: Any) -> Tensor:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    def with_kernel(kernel: Callable[..., Tensor]) -> str:
        found = SimpleNamespace(MOST_ROWS=1, linear=kernel, dequantize=dequantize)
        monkeypatch.setattr(whole_linear, "_kernels_for", lambda x: found)
        problem_on.cache_clear()
        return problem_on(CPU, bits)

    try:
        assert with_kernel(linear) == "they are wrong by 1.000"
        assert with_kernel(broken) == "there are none here (ValueError: no compiler)"
        with pytest.raises(torch.AcceleratorError):
            with_kernel(faulty)
    finally:
        problem_on.cache_clear()


def test_without_triton_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_linear, "_has_triton", lambda: False)
    assert problem_on(CUDA, 4) == "there is no triton here"
    problem_on.cache_clear()


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Which has the products that a test puts in, and lies in the host's memory."""
    sound: set[str] = set()

    def problem(device: torch.device, bits: int | None = None) -> str:
        return "" if (f"int{bits}" if bits else "fp8") in sound else "there are none here"

    def on_the_host(*args: Any, at: torch.device, **settings: Any) -> WholeLinear:
        assert at == CUDA
        return WholeLinear(*args, **settings)

    monkeypatch.setattr(fp8, "problem_on", problem)
    monkeypatch.setattr(whole_linear, "problem_on", problem)
    monkeypatch.setattr(few_bits, "WholeLinear", on_the_host)
    monkeypatch.setattr(few_bits, "free_bytes", lambda device: 2**31)
    return sound


@pytest.mark.parametrize(
    ("asked", "sound", "got"),
    [
        ("int4", {"int4", "int8", "fp8"}, "int4"),
        ("int4", {"int8", "fp8"}, "fp8"),
        ("int4", {"int8"}, "int8"),
        ("int8", {"int8", "fp8"}, "fp8"),
        ("int8", {"int4", "int8"}, "int8"),
        ("fp8", {"int8", "fp8"}, "fp8"),
        ("fp8", {"int8"}, "int8"),
        ("fp8", {"int4"}, None),
    ],
)
def test_a_device_gets_the_nearest_that_is_right(
    asked: few_bits.Kind,
    sound: set[str],
    got: str | None,
    a_gpu: set[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    a_gpu |= sound
    model: Any = tiny("qwen3")
    with caplog.at_level(logging.WARNING):
        assert quantize_for("tiny", model, asked, CUDA) == got
    said = f"tiny gets {got} on this device, not {asked}"
    assert (said in caplog.text) == (got not in (None, asked))
    assert (f"no products of {asked}" in caplog.text) == (asked not in sound)
    layers = [m for m in model.modules() if isinstance(m, WholeLinear)]
    assert bool(layers) == (got in ("int4", "int8"))
    assert {layer.bits for layer in layers} <= {8, 4 if got == "int4" else 8}
    if got == "int4":
        assert model.lm_head.bits == 8, "as on a processor"
        assert model.lm_head(random(1, 64)).dtype == torch.float32
        assert type(model.model.embed_tokens) is nn.Embedding


def test_a_model_is_loaded_in_4_bits(
    tiny_model: Path, a_gpu: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu |= {"int4", "int8", "fp8"}
    monkeypatch.setattr(nn.Module, "to", lambda self, device: self)
    monkeypatch.setattr("inference.loader.free_bytes", lambda device: 2**30)
    monkeypatch.setattr("inference.loader.choose_kernels", lambda *_: "")

    def load(**settings: Any) -> Any:
        return load_model(
            "tiny", tiny_model, lambda *_: None, torch.bfloat16, device=CUDA, **settings
        ).info

    try:
        plain, whole = load(), load(bits=4)
    finally:
        attention.use_kernels(None)
    assert (plain.dtype, whole.dtype) == ("bfloat16", "int4")
    assert whole.weights_bytes < plain.weights_bytes
