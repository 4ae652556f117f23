"""Tool servers for tests: a process that listens, and the file that names servers to a site."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.sites import free_port

MODULE = ["-m", "tests.tool_server"]


class ToolServer:
    """The one of tests/tool_server.py, over HTTP. Use as a context manager, or by `start` and `kill`."""

    def __init__(self, folder: Path, changed: str = "") -> None:
        self.log = folder / "tools.log"
        self.changed = changed
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> Self:
        given = ["--log", str(self.log), "--port", str(self.port), "--changed", self.changed]
        self.process = subprocess.Popen(
            [sys.executable, *MODULE, *given], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline_s = time.monotonic() + 60.0
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return self
            except OSError:
                assert time.monotonic() < deadline_s
                assert self.process.poll() is None
                time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def done(self) -> list[dict[str, Any]]:
        """What it was asked, so far."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]


def started_here(folder: Path, *, changed: str = "") -> dict[str, Any]:
    """The entry of one that is started by who asks it."""
    given = ["--log", str(folder / "tools.log"), "--changed", changed]
    root = str(Path(__file__).resolve().parent.parent)
    return {"command": sys.executable, "args": [*MODULE, *given], "cwd": root}


def write_servers(path: Path, **servers: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"mcpServers": servers}))
    return path
