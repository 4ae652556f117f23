"""Time on a device: the host waits for the device's clock, not for its own calls."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how often to measure; `is_quick` shows that it works and says nothing of speed."""

    device: torch.device
    is_quick: bool

    @property
    def repeats(self) -> int:
        return 1 if self.is_quick else 20

    def seconds(self, work: Callable[[], object], repeats: int | None = None) -> float:
        """Of one piece of work, the median of some, behind a first one that compiles."""
        work()
        found = []
        for _ in range(repeats or self.repeats):
            self.synchronize()
            begin_s = time.perf_counter()
            work()
            self.synchronize()
            found.append(time.perf_counter() - begin_s)
        return median(found)

    def device_seconds(self, works: Sequence[Callable[[], object]]) -> float:
        """Of one of these, which are launched one behind the other: the device's time alone. They may
        read so much in all that none finds in a cache what another has read."""
        if self.device.type != "cuda":
            return self.seconds(lambda: [work() for work in works]) / len(works)
        for work in works:
            work()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for work in works:
                work()
        return self.seconds(graph.replay) / len(works)

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device can do at most: bytes read or written, and bfloat16 operations, a second."""

    bytes_per_s: float
    operations_per_s: float


def ceilings(bench: Bench) -> Ceilings:
    """By a copy of 4 GiB and a product of 8192 x 8192 random matrices: zeros would be quicker."""
    num_values, size = (2**22, 256) if bench.is_quick else (2**31, 8192)
    source = torch.empty(num_values, dtype=torch.bfloat16, device=bench.device)
    target = torch.empty_like(source)
    copy_s = bench.seconds(lambda: target.copy_(source))
    left, right = (
        torch.randn(size, size, device=bench.device).to(torch.bfloat16) for _ in range(2)
    )
    product_s = bench.seconds(lambda: left @ right)
    return Ceilings(2 * source.nbytes / copy_s, 2 * size**3 / product_s)
