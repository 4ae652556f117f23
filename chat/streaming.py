"""Responses that are streams."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from django.http import StreamingHttpResponse


class ClosingStream(StreamingHttpResponse):
    """Ends what it is made of at the moment when its reader leaves.

    Django closes its own iterator only, and leaves the one behind it to the garbage collector, which
    may come late, and in nobody's scope.
    """

    def __init__(self, pieces: AsyncGenerator[Any, None], **more: Any) -> None:
        self._pieces = pieces
        super().__init__(pieces, **more)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._pieces):
            async for piece in super().__aiter__():
                yield piece


def server_sent_events(frames: AsyncGenerator[str, None]) -> ClosingStream:
    return ClosingStream(
        frames,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
