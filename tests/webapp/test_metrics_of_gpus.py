"""What /metrics says of GPUs and workers; the driver's library is a stand-in, the rest is not."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from inference import nvml, read_gpus
from inference.catalog import WorkerState
from inference.messages import EngineStats
from tests.inference.gpus import GIB, FakeNvml, install
from webapp.metrics import _Gpus, _of_workers


@pytest.fixture(autouse=True)
def _ask_again() -> Iterator[None]:
    yield
    nvml._nvml.cache_clear()


def _told() -> dict[tuple[str, tuple[str, ...]], float]:
    registry = CollectorRegistry()
    registry.register(_Gpus(read_gpus()))
    assert (b"gpu" in generate_latest(registry)) == bool(read_gpus())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_each_gpu_tells_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"used_gib": 30, "percent": 62, "celsius": 71, "milliwatts": 412_500}
    install(monkeypatch, FakeNvml([full, {"used_gib": 8, "celsius": 40}]))
    assert _told() == {
        ("vitrine_gpu_memory_bytes", ("0", "used")): 30 * GIB,
        ("vitrine_gpu_memory_bytes", ("0", "total")): 80 * GIB,
        ("vitrine_gpu_memory_bytes", ("1", "used")): 8 * GIB,
        ("vitrine_gpu_memory_bytes", ("1", "total")): 80 * GIB,
        ("vitrine_gpu_utilisation_ratio", ("0",)): 0.62,
        ("vitrine_gpu_temperature_celsius", ("0",)): 71,
        ("vitrine_gpu_temperature_celsius", ("1",)): 40,
        ("vitrine_gpu_power_watts", ("0",)): 412.5,
    }


def test_nothing_is_told_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    assert _told() == {}


def test_a_straggler_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [
        WorkerState("m", 1, "ready", (), False, 0, EngineStats()),
        WorkerState("m", 2, "loading", (), True, 4, EngineStats()),
    ]
    monkeypatch.setattr("chat.service.workers_now", lambda: states)
    told = {
        (sample.name, sample.labels["worker"]): sample.value
        for family in _of_workers()
        for sample in family.samples
    }
    assert told == {
        ("vitrine_worker_ready", "1"): 1,
        ("vitrine_worker_ready", "2"): 0,
        ("vitrine_worker_straggling", "1"): 0,
        ("vitrine_worker_straggling", "2"): 1,
        ("vitrine_worker_restarts", "1"): 0,
        ("vitrine_worker_restarts", "2"): 4,
    }
