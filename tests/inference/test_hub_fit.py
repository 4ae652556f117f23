"""Only models that can be served are pulled: those that fit into memory, of known formats."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from inference import Engine, EngineConfig, ModelTooLarge, memory, nvml, placement
from inference.hub import plan_pull
from inference.hub_talk import HubError
from tests.engine_workers import engine_workers
from tests.inference.hub_server import NAME, Hub


def test_a_model_larger_than_memory_is_not_fetched(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.num_weights = {"BF16": 2**20}
    assert not plan_pull(NAME, tmp_path).warning
    with pytest.raises(ModelTooLarge):
        plan_pull(NAME, tmp_path, memory_bytes=1000)
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 1000)  # a smaller machine
    with pytest.raises(ModelTooLarge):
        plan_pull(NAME, tmp_path)


def test_a_model_is_measured_as_it_is_loaded(hub: Hub, tmp_path: Path) -> None:
    """Not as its files are: with 16 bits for each weight there, a processor that multiplies no bfloat16
    needs twice as much, and one that does half of what files of 32 bits take."""
    hub.num_weights = {"BF16": 2**20, "F32": 2**10}
    weights = 2**20 + 2**10
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        needed = int(weights * size * 1.15)
        plan_pull(NAME, tmp_path, memory_bytes=needed, dtype=dtype)
        with pytest.raises(ModelTooLarge) as caught:
            plan_pull(NAME, tmp_path, memory_bytes=needed - 1, dtype=dtype)
        assert caught.value.needed_bytes == needed


def test_where_it_is_uncertain_whether_a_model_fits_somebody_is_warned(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 1000)
    for num_weights in (None, {"I32": 2**20, "F16": 2**10}):
        hub.num_weights = num_weights
        assert "GiB of memory" in plan_pull(NAME, tmp_path).warning
    hub.num_weights = {"BF16": 2**20}
    assert "GiB of memory" in plan_pull(NAME, tmp_path, on_gpu=True).warning
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 2**30)
    assert not plan_pull(NAME, tmp_path, on_gpu=True, memory_bytes=1000).warning


def test_gpus_are_sought_as_the_worker_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = EngineConfig(tmp_path)
    for driver, is_there in ((tmp_path, True), (tmp_path / "none", False)):
        monkeypatch.setattr(nvml, "_DRIVER", driver)
        monkeypatch.setattr(placement, "_has_cuda", lambda: True)
        assert placement.computes_on_gpu(config) == is_there
        assert placement.computes_on_gpu(replace(config, device="cuda"))
        assert not placement.computes_on_gpu(replace(config, device="cpu"))


async def test_what_models_take_that_can_sleep_is_there_for_one_that_is_pulled(
    hub: Hub, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = engine_workers()  # of other tests' sites
    engine.load("tiny")
    while engine.state("tiny").state != "ready":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    monkeypatch.setattr(memory, "available_bytes", lambda: 0)
    (worker,) = (worker for worker in engine_workers() if worker not in others)
    own_bytes = memory._own_bytes(Path(f"/proc/{worker.pid}"))
    assert 2**20 < own_bytes < worker.memory_info().rss
    assert memory.loadable_bytes() >= own_bytes
    assert memory.own_loadable_bytes() >= own_bytes
    assert not plan_pull(NAME, tmp_path).warning


def test_only_pickled_weights_are_not_enough(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    with pytest.raises(HubError, match="no safetensors"):
        plan_pull(NAME, tmp_path)


def test_gguf_files_are_told_how_to_become_a_model(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").rename(hub.folder / "model-Q8_0.gguf")
    with pytest.raises(HubError, match="python -m inference import"):
        plan_pull(NAME, tmp_path)
