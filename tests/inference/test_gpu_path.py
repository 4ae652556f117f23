"""A step over pages by the kernels for GPUs, in Triton's interpreter: as transformers computes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import attention, device
from inference.config import EngineConfig
from inference.device import CPU, choose_kernels, device_of
from inference.errors import ModelError
from inference.gpu import attention as kernels
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.small_config import shrink
from tests.inference.loops import answers, make_loop, request
from tests.inference.test_architectures import config_of

ARCHITECTURES = ("llama", "qwen3", "gemma2", "gpt_oss", "cohere2")


@pytest.fixture
def in_use() -> Iterator[None]:
    attention.use_kernels(kernels)
    yield
    attention.use_kernels(None)


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_an_architecture_computes_the_same(model_type: str, in_use: None) -> None:
    """Chunks mixed with single tokens; gemma2 has softcaps and windows, gpt_oss sinks."""
    error = packed_error(shrink(config_of(model_type)), PagedKV(64, 256))
    assert error <= MAX_RELATIVE_ERROR


def test_answers_are_the_same(tiny_model: Path, in_use: None) -> None:
    """Of an engine: prompts in chunks beside tokens that are drawn, and one that goes on."""
    asked = [
        request(f"r{n}", tuple(range(3, 3 + 9 * n)), max_tokens=4, ignore_eos=True)
        for n in (1, 3, 5)
    ]
    by_kernels = answers(make_loop(tiny_model, kv_layout="paged"), *asked)
    attention.use_kernels(None)
    assert by_kernels == answers(make_loop(tiny_model, kv_layout="paged"), *asked)


def test_kernels_that_are_right_are_used() -> None:
    try:
        assert choose_kernels("tiny", config_of("llama"), CPU) == ""
        assert attention._kernels is kernels
    finally:
        attention.use_kernels(None)


def test_kernels_that_are_wrong_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = kernels.decode

    def wrong(*args: Any, **options: Any) -> torch.Tensor:
        return decode(*args, **{**options, "scale": 0.5})

    monkeypatch.setattr(kernels, "decode", wrong)
    assert "compute something else" in choose_kernels("tiny", config_of("llama"), CPU)
    assert attention._kernels is None


def test_kernels_that_fail_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> torch.Tensor:
        raise RuntimeError("no device function")

    monkeypatch.setattr(kernels, "prefill", broken)
    assert choose_kernels("tiny", config_of("llama"), CPU) == "RuntimeError: no device function"
    assert attention._kernels is None


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(EngineConfig(Path("models"))) == CPU
    with pytest.raises(ModelError, match="finds no CUDA device"):
        device_of(EngineConfig(Path("models"), device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of(EngineConfig(Path("models"))).type == "cuda"
    assert device_of(EngineConfig(Path("models"), device="cpu")) == CPU
    lfm2 = config_of("lfm2", layer_types=["conv", "full_attention"], num_hidden_layers=2)
    assert device.fits_on(torch.device("cuda"), "hybrid", lfm2) == CPU
