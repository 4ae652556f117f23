"""The web process: the ASGI application on daphne, and its orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webapp.serving.daphne_server import DaphneServer

logger = logging.getLogger(__name__)

_CLOSE_RESTARTING = 1012
_LAST_RESPONSES_S = 2.0
_LAST_LETTERS_S = 2.0
# How long a thread may keep the interpreter while the loop waits for it; Python's own is 5 ms, after
# each of the loop's calls of the system, and nobody's token moves meanwhile.
_SWITCH_S = 0.001


def run_web(listener: socket.socket, *, drain_timeout_s: float, is_ready: int | None) -> None:
    """Serve until SIGTERM, then drain. Writes a byte to `is_ready` when pages are answered."""
    sys.setswitchinterval(_SWITCH_S)
    # Imported here: the import installs twisted's reactor, which must not be forked.
    from webapp.asgi import application
    from webapp.serving.daphne_server import DaphneServer

    WebProcess(DaphneServer(application, listener), drain_timeout_s, is_ready).run()


class WebProcess:
    def __init__(self, server: DaphneServer, drain_timeout_s: float, is_ready: int | None) -> None:
        self.server = server
        self.drain_timeout_s = drain_timeout_s
        self.is_ready = is_ready
        self._tasks: list[asyncio.Task[None]] = []

    def run(self) -> None:
        from webapp.mail import finish_letters

        self.server.run_with(self._begin)
        finish_letters(_LAST_LETTERS_S)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs on the loop, once it listens."""
        loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)
        self._tasks.append(loop.create_task(self._start()))

    def _on_sigterm(self) -> None:
        if len(self._tasks) == 1:  # a second signal changes nothing
            self._tasks.append(asyncio.get_running_loop().create_task(self._end()))

    async def _start(self) -> None:
        from webapp import lifecycle
        from webapp.serving.garbage import collect_when_idle

        if self.is_ready is not None:
            with contextlib.suppress(BrokenPipeError):  # the supervisor has stopped waiting
                os.write(self.is_ready, b"+")
        try:
            await lifecycle.startup()
        except Exception:
            # The pages still work, and /readyz says what is missing.
            logger.exception("the engine could not be started")
        await collect_when_idle(lifecycle.is_idle)

    async def _end(self) -> None:
        from webapp import lifecycle
        from webapp.mail import hurry_letters

        self._tasks[0].cancel()
        hurry_letters()
        try:
            async with asyncio.timeout(self.drain_timeout_s + 2.0):
                await lifecycle.drain(self.drain_timeout_s)
        except Exception:
            logger.exception("draining failed")
        self.server.close_sockets(_CLOSE_RESTARTING)
        await self.server.finish_responses(_LAST_RESPONSES_S)
        self.server.stop()
