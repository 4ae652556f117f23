"""Signs of life in server-sent events: proxies cut a connection over which nothing comes for a minute,
and a long prompt is read, or another server thinks, for longer.

A comment, which every client reads over, goes out wherever a stream has said nothing for a while. It
goes between two messages of the application, and those hold whole events.
"""

import asyncio
from contextlib import suppress
from time import monotonic

from webapp.asgi_types import Application, Message, Receive, Scope, Send

SILENCE_S = 15.0
COMMENT = b": keep-alive\n\n"


class KeepAlive:
    """Around what answers HTTP. A stream costs one timer, however many events it has."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = _Line(send)
        try:
            await self.application(scope, receive, line.send)
        finally:
            line.hang_up()


class _Line:
    """One response on its way out."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._spoke_at = 0.0
        self._num_sending = 0
        self._timer: asyncio.TimerHandle | None = None
        self._comment: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        if not message.get("more_body"):
            self.hang_up()  # before the last one is sent: nothing may come behind it
        self._num_sending += 1
        try:
            await self._send(message)
        finally:
            self._num_sending -= 1
            self._spoke_at = monotonic()
        if message["type"] == "http.response.start" and _is_event_stream(message):
            self._timer = asyncio.get_running_loop().call_later(SILENCE_S, self._listen)

    def hang_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _listen(self) -> None:
        left_s = self._spoke_at + SILENCE_S - monotonic()
        # A reader who takes nothing is sent nothing more, and a large event goes out in pieces.
        if left_s <= 0 and not self._num_sending:
            self._comment = asyncio.create_task(self._say_something())
        wait_s = left_s if left_s > 0 else SILENCE_S
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._listen)

    async def _say_something(self) -> None:
        with suppress(Exception):  # the reader has left, as the application will hear
            message = {"type": "http.response.body", "body": COMMENT, "more_body": True}
            if self._timer is not None:
                await self.send(message)


def _is_event_stream(message: Message) -> bool:
    return any(
        bytes(name).lower() == b"content-type" and bytes(value).startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
