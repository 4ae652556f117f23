"""The order in which a device works: what is submitted runs behind all that was submitted before."""

from collections.abc import Callable
from typing import Protocol

import torch


class Mark(Protocol):
    """A point in a stream."""

    def wait(self) -> None:
        """Until all that was submitted before it has run. Raises what the device has failed at."""
        ...


class Stream(Protocol):
    def submit(self, work: Callable[[], None]) -> None: ...
    def mark(self) -> Mark: ...


class DeviceStream:
    """torch's current stream of a device. Tensors queue their own work there, so `submit` only calls.

    All of an engine's work is in this one stream. So a block of the cache that is given away while a
    step that writes to it is still under way is written by its new owner behind that step.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def submit(self, work: Callable[[], None]) -> None:
        work()

    def mark(self) -> Mark:
        return _CudaMark() if self._device.type == "cuda" else _Done()


class _CudaMark:
    def __init__(self) -> None:
        self._event = torch.cuda.Event()
        self._event.record()

    def wait(self) -> None:
        self._event.synchronize()


class _Done:
    """On a processor, whatever was submitted has run."""

    def wait(self) -> None:
        pass
