"""What `serve` tells the person at the console: plain lines, each with seconds since the start."""

import os
import time
from pathlib import Path


def say(text: str) -> None:
    print(f"{seconds_since_start():6.1f} s  {text}", flush=True)


def announce(text: str) -> None:
    """A line that programs may wait for: without seconds."""
    print(text, flush=True)


def seconds_since_start() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) - _STARTED_S


def _process_start_s() -> float:
    """When the kernel started this process, so that imports count too. Source: proc(5), stat."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


# Read once: children go on with the clock of the supervisor that forked them.
_STARTED_S = _process_start_s()
