"""`python -m benchmarks.startup`: from the command to the first page, and what everything weighs.

A page counts when its last byte is read; the engine's worker loads its model meanwhile. Cold is an
empty DATA_DIR: database, migrations and static files are made. Memory is PSS, which counts shared
pages once; Postgres' shared buffers are in it as far as they are used.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import httpx2
import psutil

from benchmarks import table
from tests.sites import Site, free_port

PAGE = "/accounts/login/"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        data_dir = Path(folder) / "data"
        cold = _start_and_stop(data_dir)
        warm = [_start_and_stop(data_dir) for _ in range(arguments.rounds)]
    rows = [_row("cold", [cold]), _row("warm", warm)]
    table.show("From the command to the first page", rows)
    table.save("startup", {"machine": table.machine(), "load": os.getloadavg()[0], "rows": rows})


def _start_and_stop(data_dir: Path) -> dict[str, float]:
    site = Site(data_dir, free_port(), VITRINE_PRELOAD="true")
    started = time.perf_counter()
    site.start(wait=False)
    _first_page(site.url)
    first_page_s = time.perf_counter() - started
    site.wait_ready()
    memory = _shell_pss_mib(site)
    stopping = time.perf_counter()
    site.stop()
    return {"first_page_s": first_page_s, "stop_s": time.perf_counter() - stopping, **memory}


def _first_page(url: str) -> None:
    """Ask as a browser would that was opened too early."""
    while True:
        try:
            assert httpx2.get(url + PAGE, timeout=60).status_code == 200
        except httpx2.TransportError:
            time.sleep(0.005)
        else:
            return


def _shell_pss_mib(site: Site) -> dict[str, float]:
    """All processes but the engine's worker, once the Celery worker is there."""
    time.sleep(3)
    processes = [psutil.Process(site.process.pid), *site.descendants()]
    shell = [process for process in processes if "inference.worker" not in process.cmdline()]
    total = sum(process.memory_full_info().pss for process in shell)
    return {"num_processes": len(shell), "pss_mib": total / 2**20}


def _row(name: str, results: list[dict[str, float]]) -> table.Row:
    medians = {key: statistics.median(result[key] for result in results) for key in results[0]}
    return {
        "start": name,
        "first page s": medians["first_page_s"],
        "stop s": medians["stop_s"],
        "processes": int(medians["num_processes"]),
        "memory MiB": medians["pss_mib"],
    }


if __name__ == "__main__":
    main()
