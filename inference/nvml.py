"""What the driver tells of the GPUs, through NVML. Loads no torch and touches no device.

Needs the package nvidia-ml-py (`pip install nvidia-ml-py`, BSD). Without it, or without a driver, there
are no GPUs as far as the web process knows: nothing is shown of them, and one log line says why where
there is a driver.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class GpuReading:
    """A GPU at this moment. What a device does not tell is None: laptops have no power, say.

    `uuid` is what CUDA_VISIBLE_DEVICES takes. `utilisation` is the share of the last moment in which
    some kernel ran, from 0 to 1.
    """

    index: int
    uuid: str
    name: str
    total_bytes: int
    used_bytes: int
    utilisation: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - self.used_bytes


def read_gpus() -> tuple[GpuReading, ...]:
    """Those that this process may use, in the driver's order. None where anything is wrong.

    Takes about a millisecond for each.
    """
    nvml = _nvml()
    if nvml is None:
        return ()
    try:
        readings = [_read(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:  # a device has fallen off the bus
        logger.warning("the GPUs cannot be read: %s", error)
        return ()
    return _visible(readings, os.environ.get("CUDA_VISIBLE_DEVICES"))


def has_driver() -> bool:
    return _DRIVER.exists()


@cache
def _nvml() -> Any:
    """NVML, ready; None if there is none. Asked once: a driver is not installed under a running site."""
    try:
        nvml = import_module("pynvml")
    except ImportError:
        if has_driver():
            logger.warning(
                "there is a driver of NVIDIA's, but not the package nvidia-ml-py: nothing is told of"
                " GPUs, and models are not shared out over several"
            )
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        logger.info("no GPU is told of: %s", error)
        return None
    return nvml


def _read(nvml: Any, index: int) -> GpuReading:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)

    def told(read: Callable[[], float]) -> float | None:
        try:
            return read()
        except nvml.NVMLError:
            return None

    return GpuReading(
        index=index,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=str(nvml.nvmlDeviceGetName(handle)),
        total_bytes=int(memory.total),
        used_bytes=int(memory.used),
        utilisation=told(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        temperature_celsius=told(
            lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        ),
        power_watts=told(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3),
    )


def _visible(readings: list[GpuReading], allowed: str | None) -> tuple[GpuReading, ...]:
    """As CUDA reads CUDA_VISIBLE_DEVICES: numbers or beginnings of UUIDs, up to the first that is none.

    Parts of a device (MIG) are no devices here.
    """
    if allowed is None:
        return tuple(readings)
    found: list[GpuReading] = []
    for entry in (part.strip() for part in allowed.split(",")):
        fitting = [
            reading
            for reading in readings
            if (entry.isdecimal() and reading.index == int(entry))
            or (entry.startswith("GPU-") and reading.uuid.startswith(entry))
        ]
        if len(fitting) != 1 or fitting[0] in found:
            break
        found += fitting
    return tuple(found)
