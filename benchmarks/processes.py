"""CPU seconds of a site's processes."""

import psutil

from tests.engine_workers import engine_workers
from tests.sites import Site


def without_workers(site: Site) -> list[psutil.Process]:
    """All of a site's processes but the engine's."""
    workers = {process.pid for process in engine_workers(site.process.pid)}
    return [process for process in site.descendants() if process.pid not in workers]


def cpu_s(processes: list[psutil.Process]) -> float:
    """User and system time so far of those that still live."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
