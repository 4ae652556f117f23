"""`python -m benchmarks.api.upstream PORT`: a server of OpenAI's protocol, as little as it can be.

It says the words of the scripted loop at its pace, one token of all streams in a step, over plain
sockets: whoever stands before it is measured beside it, so it should not be what is slow.
"""

import asyncio
import contextlib
import itertools
import json
import re
import sys
import time
from asyncio import StreamReader, StreamWriter
from typing import Any

from benchmarks.chat.scripted import loop

MODEL = "scripted"
PATH = "/v1/chat/completions"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LISTED = {"id": MODEL, "object": "model", "created": 0, "owned_by": "benchmarks"}
_numbers = itertools.count(1)


class _Stream:
    """One answer. `end` is set after its last event, or when nobody reads it any more."""

    def __init__(self, writer: StreamWriter, asked: dict[str, Any]) -> None:
        self._writer = writer
        self._num_tokens = min(loop.NUM_TOKENS, asked.get("max_tokens") or loop.NUM_TOKENS)
        self._words = loop.text_of(self._num_tokens).split()
        self._has_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        self._chunk = {
            "id": f"chatcmpl-{next(_numbers)}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": asked.get("model"),
            "system_fingerprint": None,
        } | ({"usage": None} if self._has_usage else {})
        self.end = asyncio.Event()
        self._num_done = 0
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self._write([self._event({"role": "assistant", "content": "", "refusal": None})])

    def step(self) -> None:
        if self._writer.is_closing():
            self.end.set()
            return
        events = [self._event({"content": self._words[self._num_done] + " "})]
        self._num_done += 1
        if self._num_done == self._num_tokens:
            events += [self._event({}, "stop"), *self._usage(), "[DONE]"]
        self._write(events)
        if self._num_done == self._num_tokens:
            self._writer.write(b"0\r\n\r\n")
            self.end.set()

    def _event(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _json({**self._chunk, "choices": [choice]})

    def _usage(self) -> list[str]:
        if not self._has_usage:
            return []
        usage = {
            "prompt_tokens": 10,
            "completion_tokens": self._num_tokens,
            "total_tokens": self._num_tokens + 10,
        }
        return [_json({**self._chunk, "choices": [], "usage": usage})]

    def _write(self, events: list[str]) -> None:
        data = "".join(f"data: {event}\n\n" for event in events).encode()
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))


class Upstream:
    def __init__(self) -> None:
        self._streams: set[_Stream] = set()
        self._is_asked = asyncio.Event()

    async def pace(self) -> None:
        """Never ends. A step that comes late is made up for by one, as the scripted loop does it."""
        step_s, due_s = 1 / loop.TOKENS_PER_S, 0.0
        while True:
            await self._is_asked.wait()
            due_s = max(due_s + step_s, time.monotonic() - step_s)
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            for stream in list(self._streams):
                stream.step()
                if stream.end.is_set():
                    self._streams.discard(stream)
            if not self._streams:
                self._is_asked.clear()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """A connection, until the other side closes it."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                method, path, _ = head.decode("latin-1").split(" ", 2)
                await self._answer(method, path, body, writer)
                if b"\r\nconnection: close" in head.lower():
                    break
        writer.close()

    async def _answer(self, method: str, path: str, body: bytes, writer: StreamWriter) -> None:
        if (method, path) == ("POST", PATH):
            stream = _Stream(writer, json.loads(body))
            self._streams.add(stream)
            self._is_asked.set()
            await stream.end.wait()
        elif (method, path) == ("GET", "/v1/models"):
            _write_whole(writer, "200 OK", {"object": "list", "data": [_LISTED]})
        else:
            error = {"message": f"No {path}.", "type": "invalid_request_error", "code": None}
            _write_whole(writer, "404 Not Found", {"error": error})


def _write_whole(writer: StreamWriter, status: str, value: dict[str, Any]) -> None:
    data = _json(value)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    writer.write(f"{head}\r\n{data}".encode())


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


async def main(port: int) -> None:
    upstream = Upstream()
    async with await asyncio.start_server(upstream.serve, "127.0.0.1", port, backlog=1024):
        await upstream.pace()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
