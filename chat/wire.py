"""How frames go out: JSON, and no faster than the reader reads."""

import asyncio
import json
from collections import deque
from typing import Any

WINDOW_BYTES = 256 * 1024
PATIENCE_S = 30.0


def dumps(frame: dict[str, Any]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


class AckWindow:
    """At most `WINDOW_BYTES` of one run are on their way to a reader without its acknowledgement.

    daphne gives no back-pressure: without this, a reader that never reads grows the process by
    whatever is sent to it (measured: 400 MiB).
    """

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()
        self._num_bytes = 0
        self._progress = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._num_bytes < WINDOW_BYTES

    async def room_for(self, seq: int, size_bytes: int) -> None:
        """Wait until an event may be sent, and count it. Raises TimeoutError after 30 s."""
        while not self.is_open:
            self._progress.clear()
            async with asyncio.timeout(PATIENCE_S):
                await self._progress.wait()
        self._sent.append((seq, size_bytes))
        self._num_bytes += size_bytes

    def acknowledge(self, seq: int) -> None:
        """The reader has everything up to `seq`."""
        while self._sent and self._sent[0][0] <= seq:
            self._num_bytes -= self._sent.popleft()[1]
        self._progress.set()
