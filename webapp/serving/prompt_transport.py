"""A connection that hands what it is given to the kernel at once.

Twisted's own keeps it until the reactor's next turn, asks epoll for that turn, and tells it afterwards
that there is no more to come: for each frame of each socket two calls of the system more, and a turn of
the loop. Only where the kernel takes no more is that the way for the rest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twisted.internet import tcp


class PromptTransport(tcp.Server):
    """To be set as the `transport` of a port."""

    _held: list[bytes] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within goes as one: each piece would wake its reader. Within another, with
        that: the end of a response begins the next, where it has come already."""
        if self._held is not None:
            yield
            return
        self._held = []
        try:
            yield
        finally:
            self._send_held()

    def _send_held(self) -> None:
        held, self._held = self._held, None
        if held:
            self.write(b"".join(held))

    def write(self, data: bytes) -> None:
        """What cannot be sent, also for an error, is the reactor's to see to, as ever."""
        if self._held is not None:
            self._held.append(data)
            return
        if self._is_at_rest:
            sent: Any = self.writeSomeData(data)
            if isinstance(sent, int) and sent > 0:
                data = data[sent:]
        if data:
            super().write(data)  # type: ignore[no-untyped-call]

    def loseConnection(self, *args: Any, **more: Any) -> None:  # noqa: N802
        self._send_held()
        super().loseConnection(*args, **more)  # type: ignore[no-untyped-call]

    def writeSequence(self, iovec: Any) -> None:  # noqa: N802
        """So are the pieces of a chunked response."""
        self.write(b"".join(iovec))

    @property
    def _is_at_rest(self) -> bool:
        """Whether nothing is before it, and it is not about to end."""
        is_waiting = self.dataBuffer or self._tempDataLen or self.producerPaused
        is_ending = self.disconnecting or self._writeDisconnected or not self.connected
        return not (is_waiting or is_ending)
