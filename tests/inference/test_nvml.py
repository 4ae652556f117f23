"""What is told of GPUs, by a stand-in for the driver's library."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference import nvml
from tests.inference.gpus import GIB, FakeNvml, install


@pytest.fixture(autouse=True)
def _ask_again() -> Iterator[None]:
    yield
    nvml._nvml.cache_clear()


def test_all_that_a_gpu_tells_is_read_and_what_it_does_not_tell_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = {"used_gib": 30, "percent": 62, "celsius": 71, "milliwatts": 412_500}
    install(monkeypatch, FakeNvml([full, {"used_gib": 1}]))
    first, second = nvml.read_gpus()
    assert (first.uuid, first.name, first.total_bytes) == ("GPU-a", "NVIDIA H100", 80 * GIB)
    assert (first.used_bytes, first.free_bytes) == (30 * GIB, 50 * GIB)
    assert (first.utilisation, first.temperature_celsius) == (0.62, 71)
    assert first.power_watts == 412.5
    assert (second.utilisation, second.temperature_celsius, second.power_watts) == (None,) * 3


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ("1", ["GPU-b"]),
        ("2,0", ["GPU-c", "GPU-a"]),
        ("GPU-b,GPU-a", ["GPU-b", "GPU-a"]),
        ("", []),
        ("-1,0", []),
        ("0,7,1", ["GPU-a"]),
        ("0,0", ["GPU-a"]),
        ("GPU-", []),
        ("MIG-1", []),
    ],
)
def test_no_gpu_is_seen_that_cuda_would_not_see(
    monkeypatch: pytest.MonkeyPatch, allowed: str, expected: list[str]
) -> None:
    install(monkeypatch, FakeNvml([{"used_gib": 0}] * 3))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert [gpu.uuid for gpu in nvml.read_gpus()] == expected


def test_a_lost_gpu_costs_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = FakeNvml([{"used_gib": 0}] * 2)
    install(monkeypatch, library)
    assert len(nvml.read_gpus()) == 2
    library.lost.add(1)
    assert nvml.read_gpus() == ()
    assert "GPU is lost" in caplog.text
    assert library.num_inits == 1


def test_one_line_tells_that_the_package_is_missing_where_there_is_a_driver(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    install(monkeypatch, None)
    monkeypatch.setattr(nvml, "_DRIVER", tmp_path / "version")
    assert nvml.read_gpus() == nvml.read_gpus() == ()
    assert caplog.text == ""
    (tmp_path / "version").touch()
    nvml._nvml.cache_clear()
    assert nvml.read_gpus() == nvml.read_gpus() == ()
    assert len(caplog.records) == 1
    assert "nvidia-ml-py" in caplog.text
