"""The end of what a started tool server says on its standard error: it may say why it died."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TextIO

_MAX_CHARS = 400
_PIECE_BYTES = 65_536


class LastWords:
    """`file` is what a child process writes to."""

    def __init__(self, file: TextIO, read: int) -> None:
        self.file = file
        self._read = read
        self._end = b""

    def hear(self) -> None:
        """What there is. The pipe is never full for long, so nobody waits for us."""
        try:
            piece = os.read(self._read, _PIECE_BYTES)
        except BlockingIOError:
            return
        if not piece:
            asyncio.get_running_loop().remove_reader(self._read)
        self._end = (self._end + piece)[-4 * _MAX_CHARS :]

    async def said(self) -> str:
        """The last line."""
        await asyncio.sleep(0)
        self.hear()
        lines = self._end.decode(errors="replace").strip().splitlines()
        return lines[-1][-_MAX_CHARS:] if lines else ""


@asynccontextmanager
async def last_words() -> AsyncGenerator[LastWords]:
    loop = asyncio.get_running_loop()
    read, write = os.pipe()
    os.set_blocking(read, False)
    with os.fdopen(read, "rb", buffering=0), os.fdopen(write, "w") as file:
        words = LastWords(file, read)
        loop.add_reader(read, words.hear)
        try:
            yield words
        finally:
            loop.remove_reader(read)
