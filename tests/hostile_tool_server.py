"""A tool server over HTTP that answers what a test says, as bytes if need be."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from chat.tools.servers.spec import ToolServerSpec

Value = dict[str, Any]
Answer = Callable[[Value], Awaitable[Value | bytes]]

_NO_SUCH_METHOD = {"error": {"code": -32601, "message": "no such method"}}
_BEGUN = {
    "result": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    }
}


def result(**values: Any) -> Value:
    return {"result": values}


def said(text: str) -> Value:
    return result(content=[{"type": "text", "text": text}])


def http(body: bytes, *headers: str) -> bytes:
    """A whole answer, for an endpoint that speaks no JSON-RPC."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class HostileServer:
    """`answers` are by method; an answer of bytes is sent as it is. A context manager."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def spec(self, **others: Any) -> ToolServerSpec:
        return ToolServerSpec("a", "a", **{"url": self.url, "timeout_s": 5.0, **others})

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1")
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/mcp"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length:")[2].partition("\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                if head.startswith("post"):
                    writer.write(await self._answer(json.loads(body)))
                else:
                    self.asked.append(head.partition(" ")[0])
                    writer.write(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, message: Value) -> bytes:
        method = message["method"]
        self.asked.append(method)
        if "id" not in message:
            return b"HTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n"
        usual = _BEGUN if method == "initialize" else _NO_SUCH_METHOD
        answer = self.answers.get(method)
        said = await answer(message) if answer else usual
        if isinstance(said, bytes):
            return said
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()
        return http(body, "Content-Type: application/json")
