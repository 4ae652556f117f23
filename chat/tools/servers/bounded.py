"""Answers of a tool server over HTTP, none of which may fill the memory, take a processor, or end the
calls of others."""

import json
from collections.abc import AsyncIterator
from time import monotonic

import httpx2

MAX_ANSWER_BYTES = 8 * 2**20
UNREACHED = -32050
"""A code of JSON-RPC that servers may define, for one request that came to nothing on its way."""


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Each answer has so many bytes and ends within `timeout_s`, be it a body or a stream of events.

    Compressed ones are refused: a megabyte would become a gigabyte. What goes wrong with one request is
    an answer to that request: the client would give up its whole session, with what others wait for.
    """

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":  # what a server has to say unasked, or again, nobody here hears
            return httpx2.Response(405)
        request.headers["accept-encoding"] = "identity"
        until_s = monotonic() + self._timeout_s
        try:
            response = await super().handle_async_request(request)
            return await _bounded(response, until_s)
        except httpx2.RequestError as error:
            return _unreached(str(error) or type(error).__name__)


async def _bounded(response: httpx2.Response, until_s: float) -> httpx2.Response:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    stream = _Bounded(response.stream, until_s)
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        await stream.aclose()
        return _unreached("its answer is compressed")
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=stream,
            extensions=response.extensions,
        )
    try:
        body = b"".join([piece async for piece in stream])
    finally:
        await stream.aclose()
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in ("content-length", "transfer-encoding")
    ]
    return httpx2.Response(response.status_code, headers=headers, content=body)


def _unreached(reason: str) -> httpx2.Response:
    error = {"code": UNREACHED, "message": reason}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=body)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, until_s: float) -> None:
        self._stream = stream
        self._until_s = until_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for piece in self._stream:
            num_bytes += len(piece)
            if num_bytes > MAX_ANSWER_BYTES:
                raise httpx2.ReadError(f"its answer is longer than {MAX_ANSWER_BYTES:,} bytes")
            if monotonic() > self._until_s:  # not later than by one timeout of a read
                raise httpx2.ReadTimeout("its answer does not end")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
