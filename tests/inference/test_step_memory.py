"""How much of a GPU's memory a cache may take: what the largest step leaves. With made-up counters."""

from pathlib import Path

import pytest
import torch

from inference import device
from inference.config import EngineConfig
from inference.device import free_kv_bytes
from inference.gpu.step_memory import step_bytes
from tests.inference.loops import make_loop

GIB = 2**30
CUDA = torch.device("cuda")


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What torch's allocator counts, before a step and at its peak."""
    found = {"before": 5 * GIB, "peak": 7 * GIB}
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: found["before"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: found["peak"])
    return found


def test_a_step_of_the_budget_shows_what_it_takes(
    tiny_model: Path, counters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_loop(tiny_model, kv_layout="paged").runner.model
    read = []
    model.register_forward_hook(lambda *_, kwargs=None: read.append(1))
    found = step_bytes(model, num_tokens=70, num_sequences=4, vocab_size=1000)
    assert found is not None
    logits = 3 * 4 * 1000 * 4
    # Keys and values are in the cache's share, and not in the step's.
    assert 1.25 * 2 * GIB * 0.99 < found - logits < 1.25 * 2 * GIB
    assert read == [1]
    counters["peak"] = counters["before"]
    assert step_bytes(model, num_tokens=70, num_sequences=4, vocab_size=1000) == logits


def test_where_a_step_finds_no_room_nobody_knows(
    tiny_model: Path, counters: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    model = make_loop(tiny_model, kv_layout="paged").runner.model

    def fails(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    model.register_forward_pre_hook(fails)
    assert step_bytes(model, num_tokens=70, num_sequences=4, vocab_size=1000) is None
    assert "what a step takes could not be found out: CUDA out of memory" in caplog.text


def test_the_cache_takes_what_a_step_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda _: 20 * GIB)
    assert free_kv_bytes(CUDA) == int(20 * GIB * 0.85)
    assert free_kv_bytes(CUDA, 4 * GIB) == 16 * GIB - device._GRAPHS_BYTES
    assert free_kv_bytes(CUDA, 0) == int(20 * GIB * 0.95)
    assert free_kv_bytes(CUDA, 30 * GIB) == 0


def test_a_gpu_is_asked_for_more_at_once() -> None:
    config = EngineConfig(Path("models"))
    assert (config.num_sequences_on("cpu"), config.budget_tokens_on("cpu")) == (16, 256)
    assert (config.num_sequences_on("cuda"), config.budget_tokens_on("cuda")) == (256, 2048)
    config = EngineConfig(Path("models"), max_num_sequences=3, step_budget_tokens=40)
    assert (config.num_sequences_on("cuda"), config.budget_tokens_on("cuda")) == (3, 40)
