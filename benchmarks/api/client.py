"""A program that streams completions over plain sockets, so that its own work delays little."""

import asyncio
import itertools
import json
import time

from tests.sites import Site

_numbers = itertools.count(1)  # nobody asks the same twice: a text that was judged is remembered


class Caller:
    """One request on a connection of its own."""

    def __init__(self, site: Site, key: str, model: str, max_tokens: int) -> None:
        question = f"Tell me of {next(_numbers)} words."
        body = json.dumps(
            {
                "model": model,
                "messages": [{"role": "user", "content": question}],
                "max_tokens": max_tokens,
                "stream": True,
            }
        )
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._port = site.port
        self._request = (head + body).encode()
        self.ttft_s = 0.0
        self.num_chunks = 0
        self.text = ""

    async def ask(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        began_s = time.monotonic()
        writer.write(self._request)
        lines: list[bytes] = []
        while line := await reader.readline():
            if not line.startswith(b"data: {"):
                continue
            lines.append(line)
            if b'"content":"w' in line:
                self.ttft_s = self.ttft_s or time.monotonic() - began_s
                self.num_chunks += 1
        writer.close()
        choices = [json.loads(line[6:])["choices"] for line in lines]
        self.text = "".join(c[0]["delta"].get("content") or "" for c in choices if c)
