"""Answers of a tool server over HTTP, none of which may fill the memory."""

from collections.abc import AsyncIterator

import httpx2

MAX_ANSWER_BYTES = 8 * 2**20


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """A plain body ends in an error where it gets longer than that. Streams of events may go on: the
    client bounds each of theirs."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        bounded = _Bounded(response.stream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=bounded,
            extensions=response.extensions,
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for piece in self._stream:
            num_bytes += len(piece)
            if num_bytes > MAX_ANSWER_BYTES:
                raise httpx2.ReadError(f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
