"""A program that listens at a port: started, waited for, and ended with all that it has started."""

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2
import psutil

_ENDING_S = 10.0


class Server:
    """Its words go to a file in `folder`, where it runs."""

    def __init__(
        self,
        command: list[str],
        port: int,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._port = port
        self._folder = folder
        self._environment = environment
        self._log = folder / f"{port}.log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        processes = self.processes() if self._process.poll() is None else []
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        for process in psutil.wait_procs(processes, _ENDING_S)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def wait_for(self, path: str, timeout_s: float = 300.0) -> None:
        """Until this address answers; an AssertionError tells what the program said instead."""
        deadline_s = time.monotonic() + timeout_s
        while not self._answers(path):
            is_over = self._process.poll() is not None or time.monotonic() > deadline_s
            assert not is_over, (
                f"{self._command[0]}: {self._log.read_text(errors='replace')[-2000:]}"
            )
            time.sleep(0.1)

    def _answers(self, path: str) -> bool:
        with suppress(httpx2.TransportError):
            return httpx2.get(f"http://127.0.0.1:{self._port}{path}", timeout=10).status_code == 200
        return False

    def processes(self) -> list[psutil.Process]:
        own = psutil.Process(self._process.pid)
        return [own, *own.children(recursive=True)]


def clean_environment(home: Path, **own: str) -> dict[str, str]:
    """For another one's program: nothing of ours, whose packages would stand before its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    return {**kept, "HOME": str(home), **own}
