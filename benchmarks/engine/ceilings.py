"""What the machine can do, measured in a process of its own: `python -m benchmarks.engine.ceilings`.

Per CPU second of the threads that worked, as everything that is compared with it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from inference.worker_process import thread_environment

if TYPE_CHECKING:
    import torch

_READ_BYTES = 512 * 2**20  # more than any cache holds
_GEMM_SIZES = (256, 1024, 2048)
_LONG_S = 1.0
_GEMM_TYPES = ("float32", "bfloat16", "int8")
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes read from memory, and floating point (or integer) operations by type, per CPU second."""

    read_bytes_per_s: float
    gemm_per_s: dict[str, float]


class CeilingsMeter:
    """A child process that measures whenever it is asked; torch stays out of this one."""

    def __init__(self, threads: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.ceilings", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | thread_environment(threads),
        )

    def measure(self) -> Ceilings:
        """Takes about two seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Ceilings(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _main() -> None:
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    values = torch.randn(_READ_BYTES // 4)
    matrix, vector = values.view(-1, 4096), torch.randn(4096)
    for _ in sys.stdin:
        read_s = min(_cpu_s(values.sum), _cpu_s(lambda: matrix @ vector))
        per_s = {name: _gemm_per_s(getattr(torch, name)) for name in _GEMM_TYPES}
        # What has no instructions could be multiplied as float32: slower is no ceiling.
        per_s = {name: max(rate, per_s["float32"]) for name, rate in per_s.items()}
        found = Ceilings(_READ_BYTES / read_s, per_s)
        print(json.dumps(asdict(found)), flush=True)


def _gemm_per_s(dtype: "torch.dtype") -> float:
    """By the largest size that takes no minutes: without instructions for a type (bfloat16 on AVX2) one
    product of 2048 would, and none is nearer to the ceiling there."""
    per_s = 0.0
    for size in _GEMM_SIZES:
        num_operations = 2 * size**3
        if per_s and num_operations / per_s > _LONG_S:
            break
        per_s = max(per_s, num_operations / _cpu_s(_product_of(dtype, size)))
    return per_s


def _product_of(dtype: "torch.dtype", size: int) -> Callable[[], object]:
    import torch

    if dtype == torch.int8:
        left, right = (torch.randint(-127, 127, (size, size), dtype=dtype) for _ in range(2))
        return lambda: torch._int_mm(left, right)
    left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
    return lambda: left @ right


def _cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of one piece of work, the median of some."""
    work()
    found = []
    for _ in range(_REPEATS):
        begin_s = time.process_time()
        work()
        found.append(time.process_time() - begin_s)
    return median(found)


if __name__ == "__main__":
    _main()
