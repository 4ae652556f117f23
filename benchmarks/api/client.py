"""A program that streams completions over plain sockets, so that its own work delays little."""

import asyncio
import itertools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

_numbers = itertools.count(1)  # nobody asks the same twice: a text that was judged is remembered
_FIRST_WORD = re.compile(rb'"content": ?"w')


@dataclass(frozen=True)
class Endpoint:
    """Where completions are asked for, by whom, and of which model."""

    port: int
    path: str
    model: str
    key: str = "none"


class Caller:
    """One request on a connection of its own."""

    def __init__(self, endpoint: Endpoint, max_tokens: int) -> None:
        question = f"Tell me of {next(_numbers)} words."
        body = json.dumps(
            {
                "model": endpoint.model,
                "messages": [{"role": "user", "content": question}],
                "max_tokens": max_tokens,
                "stream": True,
            }
        )
        head = (
            f"POST {endpoint.path} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\n"
            f"Authorization: Bearer {endpoint.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._port = endpoint.port
        self._request = (head + body).encode()
        self._parts: list[bytes] = []
        self.ttft_s = 0.0

    async def ask(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        began_s = time.monotonic()
        writer.write(self._request)
        while part := await reader.read(2**20):
            if not self.ttft_s and _FIRST_WORD.search(part):
                self.ttft_s = time.monotonic() - began_s
            self._parts.append(part)
        writer.close()

    @property
    def response(self) -> str:
        """All that came, undone of its chunks: for whoever wants to know why there is no text."""
        head, _, body = b"".join(self._parts).partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower():
            body = b"".join(_chunks(body))
        return (head + b"\r\n\r\n" + body).decode(errors="replace")

    @property
    def text(self) -> str:
        """Read after the end, when no other stream waits for it."""
        events = (line[6:] for line in self.response.splitlines() if line.startswith("data: {"))
        choices = [json.loads(event).get("choices") for event in events]
        return "".join(c[0]["delta"].get("content") or "" for c in choices if c)


def _chunks(body: bytes) -> Iterator[bytes]:
    """A server may cut between two of them wherever it likes."""
    at = 0
    while (end := body.find(b"\r\n", at)) > 0 and (
        size := int(body[at:end].partition(b";")[0], 16)
    ):
        yield body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
