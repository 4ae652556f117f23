"""A tab whose network lets no WebSocket through: the same frames over plain HTTP."""

import json
import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from queue import Empty, Queue
from secrets import token_hex
from typing import Any, Self

import httpx2

from tests.chat.reader import Frame, Reader


class LineReader(Reader):
    """Says and hears what a Reader does."""

    line = ""

    def open(self) -> Self:
        self.line = f"/line/{token_hex(16)}"
        self.heard: Queue[Frame] = Queue()
        self.connection = HTTPConnection("127.0.0.1", self.site.port, timeout=60)
        cookies = "; ".join(f"{c.name}={c.value}" for c in self.client.cookies.jar)
        self.connection.request("GET", self.line, headers={"Cookie": cookies})
        self.socket_below = self.connection.sock  # the response takes it over
        response = self.connection.getresponse()
        assert response.status == 200, response.read()
        self.listening = threading.Thread(target=self._listen, args=(response,), daemon=True)
        self.listening.start()
        return self

    def _listen(self, response: HTTPResponse) -> None:
        kind = "message"
        with suppress(OSError, HTTPException, ValueError):
            while line := response.readline():
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    kind = text.removeprefix("event: ")
                elif text.startswith("data: "):
                    frame = json.loads(text.removeprefix("data: "))
                    self.heard.put({"type": "closed", **frame} if kind == "close" else frame)

    def close(self) -> None:
        """As a page that is left: the server hears of it by the connection alone."""
        with suppress(OSError):
            self.socket_below.shutdown(socket.SHUT_RDWR)
        self.listening.join(10)
        assert not self.listening.is_alive()
        self.connection.close()

    def say(self, frame: Frame | str) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        response = self.post([text])
        assert response.status_code == 202, response.text

    def post(self, frames: Any, **headers: str) -> httpx2.Response:
        content = frames if isinstance(frames, str) else json.dumps(frames)
        own = {"Origin": self.site.url, **headers}
        return self.client.post(self.line, content=content, headers=own)

    def hear(self, timeout_s: float = 20.0) -> Frame:
        try:
            frame = self.heard.get(timeout=timeout_s)
        except Empty:
            raise TimeoutError from None
        self.frames.append(frame)
        if frame["type"] == "run.event" and frame["seq"] % 20 == 0:
            self.say({"type": "run.ack", "run": frame["run"], "seq": frame["seq"]})
        return frame
