"""What a process has cost at a given time: wall time lies on a busy machine, CPU time less so."""

import bisect
import threading
from time import clock_gettime, monotonic
from types import TracebackType
from typing import Self

import psutil

_SAMPLE_S = 0.02
_CPU_CLOCK = 2  # CPUCLOCK_SCHED, nanoseconds: the counters in /proc go in steps of 10 ms


class CpuMeter:
    """Within its `with` block, CPU seconds and resident memory of a process, all threads included."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._clock = ~pid << 3 | _CPU_CLOCK  # as clock_getcpuclockid(3) makes it
        self._times_s: list[float] = []
        self._cpu_s: list[float] = []
        self.rss_bytes: list[int] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_over)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._sample()

    def cpu_s(self, begin_s: float, end_s: float) -> float:
        """CPU seconds between two times of the monotonic clock."""
        return self._at(end_s) - self._at(begin_s)

    def _at(self, time_s: float) -> float:
        """Interpolated between samples."""
        after = bisect.bisect_left(self._times_s, time_s)
        if after == 0:
            return self._cpu_s[0]
        if after == len(self._times_s):
            return self._cpu_s[-1]
        begin_s, end_s = self._times_s[after - 1 : after + 1]
        begin_cpu_s, end_cpu_s = self._cpu_s[after - 1 : after + 1]
        share = (time_s - begin_s) / (end_s - begin_s)
        return begin_cpu_s + share * (end_cpu_s - begin_cpu_s)

    def _sample_until_over(self) -> None:
        while not self._is_over.wait(_SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        self._times_s.append(monotonic())
        self._cpu_s.append(clock_gettime(self._clock))
        self.rss_bytes.append(self._process.memory_info().rss)
