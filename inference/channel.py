"""Length-prefixed pickles over a socket pair, between the web process and its own worker.

Pickle is safe here and only here: both ends are our own code, started by us, on an anonymous
socket that nobody else can open.
"""

import asyncio
import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<I")


def _frame(value: object) -> bytes:
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class BlockingChannel:
    """The worker's end."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._reader = sock.makefile("rb")

    def send(self, value: object) -> None:
        self._socket.sendall(_frame(value))

    def receive(self) -> Any:
        """The next value. Raises EOFError when the other end is gone."""
        return pickle.loads(self._exactly(_LENGTH.unpack(self._exactly(_LENGTH.size))[0]))  # noqa: S301

    def _exactly(self, num_bytes: int) -> bytes:
        data = self._reader.read(num_bytes)
        if len(data) < num_bytes:
            raise EOFError
        return data


class AsyncChannel:
    """The web process's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []

    @classmethod
    async def open(cls, sock: socket.socket) -> "AsyncChannel":
        return cls(*await asyncio.open_connection(sock=sock))

    def send(self, value: object) -> None:
        """Never waits: requests are small, and the worker's reader thread is always reading.

        What one turn of the loop sends goes together in the next: a call of the system and a wake-up of
        the worker for each of sixty requests at once cost more than pickling them.
        """
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(_frame(value))

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent:
            self._writer.write(b"".join(unsent))

    async def receive(self) -> Any:
        """The next value. Raises EOFError when the worker is gone."""
        try:
            header = await self._reader.readexactly(_LENGTH.size)
            return pickle.loads(await self._reader.readexactly(_LENGTH.unpack(header)[0]))  # noqa: S301
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError from None

    def close(self) -> None:
        self._flush()
        self._writer.close()
