"""A connection to one tool server, kept open: made when it is first needed, and anew after it broke."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from chat.tools.servers.bounded import BoundedTransport
from chat.tools.servers.last_words import last_words
from chat.tools.servers.spec import ToolServerSpec

if TYPE_CHECKING:
    # A second of a processor and some megabytes, which only sites with tool servers spend.
    from mcp import Client
    from mcp.types import CallToolResult, ListToolsResult
    from mcp.types import Tool as Listed

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 20.0  # a command may have to start an interpreter first
LIST_TIMEOUT_S = 20.0
MAX_LISTED = 200
_PAUSE_S = 5.0  # after one that came to nothing
_CLOSE_S = 5.0

T = TypeVar("T")


class ToolServerAway(Exception):
    """It cannot be asked. The text says why, for the model, its user and the operator.

    `was_asked`: the request may have reached it, and may have been done.
    """

    def __init__(self, reason: str, *, was_asked: bool = False) -> None:
        super().__init__(reason)
        self.was_asked = was_asked


class ServerConnection:
    """Belongs to one event loop. The protocol's client has to be closed by the task that opened it, so
    one task holds it, and others ask through it."""

    def __init__(self, spec: ToolServerSpec) -> None:
        self.spec = spec
        self.problem = ""
        self._lock = asyncio.Lock()
        self._holding: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._client: Client | None = None
        self._not_before_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def listed(self) -> list["Listed"]:
        """Every tool that the server has, up to MAX_LISTED. Raises ToolServerAway."""
        found: list[Listed] = []
        cursor: str | None = None
        while True:
            page = await self._ask(partial(_page, cursor), LIST_TIMEOUT_S)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= MAX_LISTED:
                return found[:MAX_LISTED]

    async def call(self, tool: str, arguments: dict[str, Any]) -> "CallToolResult":
        """Asked once: what may have been done is not done again. Raises ToolServerAway."""
        result: CallToolResult = await self._ask(
            lambda client: client.call_tool(tool, arguments), self.spec.timeout_s
        )
        return result

    async def close(self) -> None:
        self._closing.set()
        if self._holding is not None:
            done, _ = await asyncio.wait([self._holding], timeout=_CLOSE_S)
            if not done:
                self._holding.cancel()

    async def _ask(self, what: "Callable[[Client], Awaitable[T]]", timeout_s: float) -> T:
        client = await self._connected()
        try:
            async with asyncio.timeout(timeout_s):
                return await what(client)
        except TimeoutError:
            raise ToolServerAway(
                f"{self.spec.name} took longer than {timeout_s:g} s", was_asked=True
            ) from None
        except Exception as error:
            raise await self._told(error) from error

    async def _told(self, error: Exception) -> ToolServerAway:
        """Of an error that the server has told the connection stays; any other ends it."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

        if isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, INVALID_REQUEST):
            return ToolServerAway(f"{self.spec.name}: {_short(error)}", was_asked=True)
        await self._end()
        reason = f"the connection to {self.spec.name} broke: {_short(error)}"
        return ToolServerAway(reason, was_asked=True)

    async def _end(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.wait([self._holding], timeout=_CLOSE_S)

    async def _connected(self) -> "Client":
        async with self._lock:
            if self._client is not None:
                return self._client
            if self._closing.is_set():
                raise ToolServerAway("the process is ending")
            if monotonic() < self._not_before_s:
                raise ToolServerAway(self.problem)
            await asyncio.to_thread(_load)
            ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
            self._holding = asyncio.create_task(
                self._hold(ready), name=f"tools of {self.spec.name}"
            )
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    client = await asyncio.shield(ready)
            except TimeoutError:
                self._holding.cancel()
                raise self._failed("it does not answer") from None
            except _CannotOpen as error:
                raise self._failed(str(error)) from None
            self.problem = ""
            return client

    def _failed(self, reason: str) -> ToolServerAway:
        self.problem = f"{self.spec.name} cannot be reached: {reason}"
        self._not_before_s = monotonic() + _PAUSE_S
        logger.warning("tool server %s", self.problem)
        return ToolServerAway(self.problem)

    async def _hold(self, ready: "asyncio.Future[Client]") -> None:
        said = ""
        try:
            async with last_words() as words:
                try:
                    async with _opened(self.spec, words.file) as client:
                        self._client = client
                        if not ready.done():
                            ready.set_result(client)
                        await self._closing.wait()
                finally:
                    said = await words.said()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # groups of them, too
            reason = ": ".join(filter(None, (_reason(error), said)))
            if ready.done():
                logger.warning("the connection to tool server %s broke: %s", self.spec.name, reason)
            else:
                ready.set_exception(_CannotOpen(reason))
        finally:
            self._client = None


class _CannotOpen(Exception):
    pass


async def _page(cursor: str | None, client: "Client") -> "ListToolsResult":
    return await client.list_tools(cursor=cursor, cache_mode="refresh")


def _load() -> None:
    import mcp  # noqa: F401


@asynccontextmanager
async def _opened(spec: ToolServerSpec, errors: Any) -> "AsyncGenerator[Client]":
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import Implementation

    us = Implementation(name="Vitrine", version="0.1.0")
    if spec.command:
        started = StdioServerParameters(
            command=spec.command, args=list(spec.args), env=dict(spec.env), cwd=spec.cwd
        )
        async with Client(stdio_client(started, errors), client_info=us) as client:
            yield client
        return
    timeout = httpx2.Timeout(spec.timeout_s, connect=5.0)
    async with (
        httpx2.AsyncClient(
            headers=dict(spec.headers), timeout=timeout, transport=BoundedTransport()
        ) as http,
        Client(streamable_http_client(spec.url, http_client=http), client_info=us) as client,
    ):
        yield client


def _reason(error: BaseException) -> str:
    """The first of a group, by what it says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return _short(error)


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:300]
