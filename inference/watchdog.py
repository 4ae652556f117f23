"""Kills a worker that is silent although it has work: alive is not the same as working."""

import asyncio
from collections.abc import Callable
from time import monotonic

from inference.config import EngineConfig
from inference.worker_process import WorkerProcess


class Watchdog:
    """Of one process. `waiting_since_s` says since when it has work; infinity while it has none.

    Any frame is a sign: who waits behind others hears nothing for long, and all is well.
    """

    def __init__(
        self, process: WorkerProcess, config: EngineConfig, waiting_since_s: Callable[[], float]
    ) -> None:
        self.has_killed = False
        self.is_loading = True
        self._process = process
        self._config = config
        self._waiting_since_s = waiting_since_s
        self._heard_s = monotonic()

    @property
    def patience_s(self) -> float:
        """How long a worker may be silent while it has work."""
        return self._config.loading_watchdog_s if self.is_loading else self._config.watchdog_s

    def hear(self) -> None:
        self._heard_s = monotonic()

    async def watch(self) -> None:
        tick_s = min(self._config.watchdog_s, self._config.loading_watchdog_s) / 4
        while True:
            await asyncio.sleep(tick_s)
            owes_since_s = self._heard_s
            if not self.is_loading:
                owes_since_s = max(owes_since_s, self._waiting_since_s())
            if monotonic() - owes_since_s > self.patience_s:
                self.has_killed = True
                self._process.kill()
