"""The chat socket over plain HTTP, for networks that let no WebSocket through.

`GET /line/<id>` is a stream of server-sent events, each a frame of docs/socket.md; `POST /line/<id>`
brings frames the other way, as a JSON list of texts. The page makes the id up. Behind it is the same
consumer as behind a socket: one protocol, one place for rights and limits.

A POST may reach another process than the one with the stream; then the channel layer carries its frames.
The layer drops silently when it is full, and so may a frame be lost with the line it belongs to: a page
says again what was not accepted, as it does after any lost line.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from channels.layers import get_channel_layer

from chat.api_errors import error_body
from chat.consumers import ChatConsumer

PREFIX = "/line/"
MAX_BODY_BYTES = 2**20
MAX_FRAMES = 200  # of one request
MAX_UNHEARD = 1000  # frames of one line, and
MAX_UNHEARD_CHARS = 2 * MAX_BODY_BYTES  # of these together
KEEP_ALIVE_S = 15.0
_ID = re.compile(r"[A-Za-z0-9-]{16,64}")
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
# Some proxies wait for so much before they pass anything on.
_PADDING = b":" + b" " * 2048 + b"\n\n"

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_lines: dict[tuple[Any, str], "_Heard"] = {}


class _Heard(asyncio.Queue[dict[str, Any]]):
    """What has come over a line, for a consumer that may wait for this very page to read."""

    num_chars = 0

    @property
    def is_full(self) -> bool:
        return self.qsize() > MAX_UNHEARD or self.num_chars > MAX_UNHEARD_CHARS

    def _put(self, item: dict[str, Any]) -> None:
        self.num_chars += len(item.get("text", ""))
        super()._put(item)

    def _get(self) -> dict[str, Any]:
        item = super()._get()
        self.num_chars -= len(item.get("text", ""))
        return item


class HttpLine:
    """An ASGI application; expects scope["user"] and what else the consumer does."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        line_id = scope["path"].removeprefix(PREFIX)
        if not _ID.fullmatch(line_id):
            await _answer(send, 404, "not_found", "There is nothing at this address.")
        elif scope["method"] == "GET":
            await _Stream(scope, line_id, send).run(receive)
        elif scope["method"] == "POST" and not scope["user"].is_authenticated:
            await _answer(send, 401, "not_authenticated", "Sign in first.")
        elif scope["method"] == "POST":
            await _take(scope, line_id, receive, send)
        else:
            await _answer(send, 405, "method_not_allowed", "A line knows GET and POST.")


class _Stream:
    """One open line."""

    def __init__(self, scope: dict[str, Any], line_id: str, send: Send) -> None:
        self.scope = {**scope, "type": "websocket", "subprotocols": []}
        self.key = (scope["user"].pk, line_id)
        self.send = send
        self.heard = _Heard()
        self.has_started = self.has_ended = False

    async def run(self, receive: Receive) -> None:
        """Until the consumer closes, or the page is gone."""
        self.heard.put_nowait({"type": "websocket.connect"})
        _lines[self.key] = self.heard
        consumer = ChatConsumer.as_asgi()(self.scope, self.heard.get, self._told)
        tasks = [asyncio.create_task(each) for each in (self._hear_layer(), self._keep_alive())]
        talking = asyncio.create_task(consumer)
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait([talking, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not talking.done():
                self.heard.put_nowait({"type": "websocket.disconnect", "code": 1006})
            await talking
        finally:
            if _lines.get(self.key) is self.heard:
                del _lines[self.key]
            for task in [*tasks, talking, leaving]:
                task.cancel()
            if not leaving.done():
                await self._end(1011)

    async def _told(self, message: dict[str, Any]) -> None:
        """What the consumer says to its socket."""
        match message["type"]:
            case "websocket.accept":
                start = {"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS}
                await self.send(start)
                self.has_started = True
                await self._write(_PADDING)
            case "websocket.send":
                await self._write(b"data: %b\n\n" % message["text"].encode())
            case "websocket.close":
                await self._end(message.get("code") or 1000)

    async def _end(self, code: int) -> None:
        if not self.has_ended:
            await self._write(b'event: close\ndata: {"code": %d}\n\n' % code, is_last=True)

    async def _write(self, body: bytes, *, is_last: bool = False) -> None:
        if self.has_ended or not self.has_started:
            return
        self.has_ended = is_last
        await self.send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            await self._write(b":\n\n")

    async def _hear_layer(self) -> None:
        """Frames that came to another process."""
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(_group(self.key), channel)
        try:
            while True:
                message = await layer.receive(channel)
                if self.heard.is_full:
                    continue  # as the layer does with what it has no room for
                for text in message["frames"]:
                    self.heard.put_nowait(_frame(text))
        finally:
            with suppress(Exception):
                await layer.group_discard(_group(self.key), channel)


async def _take(scope: dict[str, Any], line_id: str, receive: Receive, send: Send) -> None:
    body = await _body(receive)
    if body is None:
        return await _answer(send, 413, "too_large", "These frames are longer than 1 MiB.")
    frames = _frames_of(body)
    if frames is None:
        return await _answer(send, 400, "bad_frame", "A JSON list of texts is wanted.")
    key = (scope["user"].pk, line_id)
    heard = _lines.get(key)
    if heard and heard.is_full:
        return await _answer(send, 429, "rate_limit_exceeded", "Too many frames at once.")
    if heard:
        for text in frames:
            heard.put_nowait(_frame(text))
    else:
        notice = {"type": "line.frames", "frames": frames}
        await get_channel_layer().group_send(_group(key), notice)
    start = {"type": "http.response.start", "status": 202, "headers": []}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


def _frames_of(body: bytes) -> list[str] | None:
    try:
        frames = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(frames, list) or len(frames) > MAX_FRAMES:
        return None
    return frames if all(map(_is_text, frames)) else None


def _is_text(value: Any) -> bool:
    """Halves of characters are none: the channel layer could not carry them."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


async def _body(receive: Receive) -> bytes | None:
    """None where it is too long, or its sender is gone."""
    parts: list[bytes] = []
    size_bytes = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size_bytes += len(parts[-1])
        if size_bytes > MAX_BODY_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, code: str, text: str) -> None:
    body = json.dumps(error_body(status, code, text)).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _frame(text: str) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": text}


def _group(key: tuple[Any, str]) -> str:
    user_id, line_id = key
    return f"line-{user_id}-{line_id}"
