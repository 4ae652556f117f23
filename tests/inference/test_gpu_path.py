"""A step over pages by the kernels for GPUs, in Triton's interpreter: as transformers computes it."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PretrainedConfig
from triton.runtime.errors import OutOfResources

from inference import attention, device
from inference.config import EngineConfig
from inference.device import CPU, check_kernels, choose_kernels, device_of, free_kv_bytes
from inference.errors import ModelError, ModelTooLarge
from inference.gpu import attention as kernels
from inference.loader import load_model
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.small_config import shrink
from tests.inference.loops import answers, make_loop, request
from tests.inference.test_architectures import config_of
from tests.inference.test_fusing import plain_rope
from tests.inference.tiny_models import make_model

# Used by itself: else all models of that kind, also those of later files, go on in the interpreter.
__all__ = ["plain_rope"]

HEAD_DIM = 24  # of a loaded model; a small copy's is 16
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


def test_kernels_that_end_the_device_end_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is tried behind them would fail, and be said to be the model's fault."""

    def faulty(*args: Any, **options: Any) -> torch.Tensor:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(kernels, "prefill", faulty)
    with pytest.raises(torch.AcceleratorError):
        choose_kernels("tiny", config_of("llama"), CPU)
    attention.use_kernels(None)


# --- at a model's own sizes -----------------------------------------------------------------------


def of_own_sizes(model_type: str, dtype: torch.dtype) -> tuple[nn.Module, PretrainedConfig]:
    config = shrink(config_of(model_type))
    config.head_dim = HEAD_DIM
    config.max_position_embeddings = 512
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, dtype=dtype, attn_implementation=attention.NAME
        )
    return model.eval(), config


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model_type", ["gemma2", "gpt_oss"])
def test_a_loaded_model_is_computed_by_the_kernels(
    model_type: str, dtype: torch.dtype, in_use: None
) -> None:
    assert check_kernels("tiny", *of_own_sizes(model_type, dtype)) == ""
    assert attention._kernels is kernels


def test_kernels_that_are_wrong_at_its_sizes_are_given_up(
    monkeypatch: pytest.MonkeyPatch, in_use: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Which a small copy cannot tell: here the heads' last values are left out."""
    decode = kernels.decode

    def wrong(query: Tensor, *args: Any, **options: Any) -> Tensor:
        query = query.clone()  # what it is compared with goes on from the same
        query[..., 16:] = 0
        return decode(query, *args, **options)

    monkeypatch.setattr(kernels, "decode", wrong)
    assert choose_kernels("tiny", config_of("qwen3"), CPU) == ""
    problem = check_kernels("tiny", *of_own_sizes("qwen3", torch.bfloat16))
    assert "at its own sizes they compute something else" in problem
    assert not attention.uses_kernels()
    assert f"tiny runs without the kernels for GPUs: {problem}" in caplog.text


def test_kernels_that_do_not_fit_are_given_up(
    monkeypatch: pytest.MonkeyPatch, in_use: None
) -> None:
    prefill = kernels.prefill

    def too_large(query: Tensor, *args: Any, **options: Any) -> Tensor:
        if query.shape[2] > 16:
            raise OutOfResources(150_000, 101_376, "shared memory")
        return prefill(query, *args, **options)

    monkeypatch.setattr(kernels, "prefill", too_large)
    assert choose_kernels("tiny", config_of("qwen3"), CPU) == ""
    problem = check_kernels("tiny", *of_own_sizes("qwen3", torch.bfloat16))
    assert "out of resource: shared memory" in problem
    assert not attention.uses_kernels()


def test_a_result_that_is_no_number_is_wrong(monkeypatch: pytest.MonkeyPatch, in_use: None) -> None:
    monkeypatch.setattr(
        kernels, "decode", lambda query, *_, **__: torch.full_like(query, torch.nan)
    )
    problem = check_kernels("tiny", *of_own_sizes("qwen3", torch.float32))
    assert "relative error nan" in problem


def test_a_model_that_goes_without_them_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    attention.use_kernels(None)
    assert check_kernels("tiny", *of_own_sizes("qwen3", torch.float32)) == ""
    assert not attention.uses_kernels()


@pytest.mark.timeout(400)  # kernels in the interpreter: 15 s of a core
def test_a_model_is_loaded_for_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_use: None
) -> None:
    """The way that CUDA goes, up to the device itself: modules stay where they are."""
    path = make_model(tmp_path / "tiny", num_hidden_layers=1)  # each is checked
    asked = []
    monkeypatch.setattr(nn.Module, "to", lambda self, device: (asked.append(device), self)[1])
    cuda = torch.device("cuda")
    monkeypatch.setattr("inference.loader.free_bytes", lambda device: 2**30)
    attention.use_kernels(None)
    loaded = load_model("tiny", path, lambda *_: None, torch.float32, device=cuda)
    assert loaded.info.device == "cuda"
    # The small copy and the model; transformers itself moves what it loads to the processor.
    assert [where for where in asked if where == cuda] == [cuda, cuda]
    assert attention._kernels is kernels


def test_a_model_that_does_not_fit_into_its_device_is_refused(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it fits into the host, which is where it is read to."""
    monkeypatch.setattr("inference.loader.choose_kernels", lambda *_: "")
    monkeypatch.setattr("inference.loader.free_bytes", lambda device: 2**16)
    cuda = torch.device("cuda")
    with pytest.raises(ModelTooLarge, match=r"tiny needs about .* 0\.0 GiB are free on its GPU\."):
        load_model("tiny", tiny_model, lambda *_: None, torch.float32, device=cuda)


def test_what_the_allocator_keeps_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage, and what others have given back, is the driver's again before it is asked."""
    done: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("given back"))

    def told(device: torch.device) -> tuple[int, int]:
        assert done == ["collected", "given back"]
        return 1000, 4000

    monkeypatch.setattr(torch.cuda, "mem_get_info", told)
    assert free_kv_bytes(torch.device("cuda")) == 850


# --- which device ---------------------------------------------------------------------------------


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
