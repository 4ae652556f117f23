"""The embedded Valkey (a Redis): cache, channel layer, rate limits and Celery's queue.

It listens on a Unix socket only, and writes an append-only file, so that queued tasks survive.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import redis

from webapp.servers import process
from webapp.servers.binaries import valkey_binary
from webapp.servers.process import ServerFailed
from webapp.servers.sockets import make_socket_directory, valkey_socket

_RETRY_S = 0.01
_EARLIER_START_WAIT_S = 15.0


@dataclass
class Valkey:
    """One server under `data_dir`; `durable` false is for tests."""

    data_dir: Path
    durable: bool = True
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def log_path(self) -> Path:
        return self.data_dir / "logs" / "valkey.log"

    def start(self) -> None:
        """Start the server without waiting for it."""
        directory = self.data_dir / "valkey"
        for path in (self.log_path.parent, directory):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_socket_directory(self.data_dir)
        lock = process.take_lock(self.data_dir / "valkey.lock", wait_s=_EARLIER_START_WAIT_S)
        try:
            self.process = process.spawn(
                self._command(directory),
                log_path=self.log_path,
                lock=lock,
                death_signal=signal.SIGTERM,
            )
        finally:
            os.close(lock)

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Return once it answers; a long append-only file takes time to load."""
        assert self.process is not None
        deadline = time.monotonic() + timeout_s
        with redis.Redis(unix_socket_path=str(valkey_socket(self.data_dir))) as client:
            while time.monotonic() < deadline:
                if self.process.poll() is not None:
                    break
                try:
                    client.ping()
                except redis.RedisError:
                    time.sleep(_RETRY_S)
                else:
                    return
        raise ServerFailed(f"Valkey did not start:\n{process.log_tail(self.log_path)}")

    def stop(self, *, timeout_s: float = 10.0) -> None:
        if self.process is not None:
            process.stop(self.process, signal.SIGTERM, timeout_s=timeout_s)

    def _command(self, directory: Path) -> list[str | Path]:
        options = {
            "port": "0",
            "unixsocket": str(valkey_socket(self.data_dir)),
            "unixsocketperm": "700",
            "dir": str(directory),
            "appendonly": "yes" if self.durable else "no",
            "save": "",
            # A full queue must fail loudly: evicting keys would lose tasks and rate limits.
            "maxmemory-policy": "noeviction",
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [valkey_binary(), *flags]
