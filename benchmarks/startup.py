"""`python -m benchmarks.startup`: from the command to the first page, and what everything weighs.

A page counts when its last byte is read; the engine's worker loads its model meanwhile. "clone" is
`make run` in a fresh clone of this repository, installation included (from the package cache where it
is warm); "cold" is an empty DATA_DIR: database, migrations and static files are made. Memory is PSS,
which counts shared pages once, of all processes; the shell is all but the engine's worker.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import psutil

from benchmarks import table
from tests.sites import ROOT, Site, free_port

PAGE = "/accounts/login/"
SAMPLE_S = 0.25
_MIB = 2**20

Result = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-clone", action="store_true", help="leave the fresh clone out")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        if not arguments.no_clone:
            rows.append(_row("clone", [_clone_and_run(Path(folder) / "clone")]))
        data_dir = Path(folder) / "data"
        rows.append(_row("cold", [_start_and_stop(data_dir)]))
        rows.append(_row("warm", [_start_and_stop(data_dir) for _ in range(arguments.rounds)]))
    table.show("From the command to the first page", rows)
    table.save("startup", {"machine": table.machine(), "load": os.getloadavg()[0], "rows": rows})


def _start_and_stop(data_dir: Path) -> Result:
    site = Site(data_dir, free_port(), VITRINE_PRELOAD="true")
    started = time.perf_counter()
    site.start(wait=False)
    result = _watch(psutil.Process(site.process.pid), site.url, started)
    stopping = time.perf_counter()
    site.stop()
    return result | {"stop_s": time.perf_counter() - stopping}


def _clone_and_run(folder: Path) -> Result:
    """As somebody does who has just found Vitrine."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if k not in ("DATA_DIR", "VIRTUAL_ENV")}
    started = time.perf_counter()
    process = subprocess.Popen(
        ["make", "run"],
        cwd=folder,
        env=environment | {"PORT": str(port), "VITRINE_PRELOAD": "true"},
        stdout=subprocess.DEVNULL,
    )
    make = psutil.Process(process.pid)
    result = _watch(make, f"http://127.0.0.1:{port}", started)
    stopping = time.perf_counter()
    for server in make.children():
        server.terminate()
    process.wait()
    return result | {"stop_s": time.perf_counter() - stopping}


def _watch(process: psutil.Process, url: str, started: float) -> Result:
    """Times and weights from the start until the model is ready and a little later."""
    with _peak_of(process) as peak:
        _ask_until(url + PAGE)
        first_page_s = time.perf_counter() - started
        _ask_until(url + "/readyz")
        ready_s = time.perf_counter() - started
        time.sleep(3)  # the Celery worker is there by now
        weights = _weights(process)
    shell = sum(pss for name, pss in weights if "inference.zygote" not in name)
    return {
        "first_page_s": first_page_s,
        "ready_s": ready_s,
        "num_processes": len(weights),
        "shell_mib": shell / _MIB,
        "all_mib": sum(pss for _, pss in weights) / _MIB,
        "peak_mib": peak[0] / _MIB,
    }


def _ask_until(url: str) -> None:
    """Ask as a browser would that was opened too early."""
    while True:
        with suppress(httpx2.TransportError):
            if httpx2.get(url, timeout=60).status_code == 200:
                return
        time.sleep(0.005)


@contextmanager
def _peak_of(process: psutil.Process) -> Iterator[list[float]]:
    """The largest weight of a tree of processes in bytes, in a list of one."""
    peak, is_over = [0.0], threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_S):
            peak[0] = max(peak[0], sum(pss for _, pss in _weights(process)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def _weights(process: psutil.Process) -> list[tuple[list[str], int]]:
    """Command line and PSS in bytes of a process and of all below it."""
    found = []
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            found.append((each.cmdline(), each.memory_full_info().pss))
    return found


def _row(name: str, results: list[Result]) -> table.Row:
    medians = {key: statistics.median(result[key] for result in results) for key in results[0]}
    return {
        "start": name,
        "first page s": medians["first_page_s"],
        "model ready s": medians["ready_s"],
        "stop s": medians["stop_s"],
        "processes": int(medians["num_processes"]),
        "shell MiB": medians["shell_mib"],
        "all MiB": medians["all_mib"],
        "peak MiB": medians["peak_mib"],
    }


if __name__ == "__main__":
    main()
