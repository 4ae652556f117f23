"""A stand-in for the driver's library, with GPUs as a test wants them."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from inference import nvml
from inference.nvml import GpuReading

GIB = 2**30


def gpu(letter: str, free_gib: float = 80.0) -> GpuReading:
    total_bytes = 80 * GIB
    used_bytes = total_bytes - int(free_gib * GIB)
    return GpuReading(ord(letter) - ord("a"), f"GPU-{letter}", "H100", total_bytes, used_bytes)


class NVMLError(Exception):
    pass


@dataclass
class FakeNvml:
    """As nvidia-ml-py has it, for what is asked of it. What a GPU lacks raises, as in the driver."""

    gpus: list[dict[str, float]]
    num_inits: int = 0
    NVML_TEMPERATURE_GPU: int = 0
    NVMLError: type[Exception] = NVMLError
    lost: set[int] = field(default_factory=set)

    def nvmlInit(self) -> None:  # noqa: N802
        self.num_inits += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index in self.lost:
            raise NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{'abcdefgh'[handle]}"

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "NVIDIA H100"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=80 * GIB, used=int(self.gpus[handle]["used_gib"] * GIB))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=self._told(handle, "percent"))

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> float:  # noqa: N802
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self._told(handle, "celsius")

    def nvmlDeviceGetPowerUsage(self, handle: int) -> float:  # noqa: N802
        return self._told(handle, "milliwatts")

    def _told(self, handle: int, what: str) -> float:
        if what not in self.gpus[handle]:
            raise NVMLError("Not Supported")
        return self.gpus[handle][what]


def install(monkeypatch: pytest.MonkeyPatch, library: FakeNvml | None) -> None:
    """From now on the driver has these GPUs; None: the package is missing."""

    def find(name: str) -> FakeNvml:
        assert name == "pynvml"
        if library is None:
            raise ImportError(name)
        return library

    monkeypatch.setattr(nvml, "import_module", find)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    nvml._nvml.cache_clear()
