"""The engine's worker processes, wherever they are below a process: forks of a zygote below it."""

from contextlib import suppress

import psutil

from inference.config import WORKER_NAME


def engine_workers(pid: int | None = None) -> list[psutil.Process]:
    """Of the process `pid`, or of this one. Those that end meanwhile are left out."""
    workers = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.name() == WORKER_NAME:
                workers.append(process)
    return workers
