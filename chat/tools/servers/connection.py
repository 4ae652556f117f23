"""A connection to one tool server, kept open: made when it is first needed, and anew after it broke."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx2

from chat.tools.servers.bounded import UNREACHED, BoundedTransport
from chat.tools.servers.child import started
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
    """It cannot be asked. The text is for the model and its user, and tells no more than that: what is
    wrong may name what only operators know, and stands in `problem` of the connection.

    `was_asked`: the request may have reached it, and may have been done.
    """

    def __init__(self, reason: str, *, was_asked: bool = False) -> None:
        super().__init__(reason)
        self.was_asked = was_asked


class ServerConnection:
    """Belongs to one event loop. `problem` is what is wrong now, without secrets."""

    def __init__(self, spec: ToolServerSpec) -> None:
        self.spec = spec
        self.problem = ""
        self._lock = asyncio.Lock()
        self._held: _Held | None = None
        self._is_closing = False
        self._num_asking = 0
        self._not_before_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._held is not None and self._held.is_open and not self.problem

    async def listed(self) -> list["Listed"]:
        """Every tool that the server has, up to MAX_LISTED. Raises ToolServerAway."""
        found: list[Listed] = await self._ask(_all_listed, LIST_TIMEOUT_S, is_probe=True)
        return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> "CallToolResult":
        """Asked once: what may have been done is not done again. Raises ToolServerAway."""
        result: CallToolResult = await self._ask(
            lambda client: client.call_tool(tool, arguments), self.spec.timeout_s
        )
        return result

    async def close(self) -> None:
        self._is_closing = True
        if self._held is not None:
            await self._held.closed(_CLOSE_S)

    async def _ask(
        self, what: "Callable[[Client], Awaitable[T]]", timeout_s: float, *, is_probe: bool = False
    ) -> T:
        """A probe shows how the server is, and ends a connection that is of no use to anybody."""
        held, client = await self._connected()
        self._num_asking += 1
        try:
            async with asyncio.timeout(timeout_s):
                result = await what(client)
        except TimeoutError:
            if is_probe and self._num_asking == 1:  # else it may just be busy
                held.end()
                self._failed("it does not answer")
            reason = f"{self.spec.name} took longer than {timeout_s:g} s"
            raise ToolServerAway(reason, was_asked=True) from None
        except Exception as error:
            if is_probe:
                self.problem = self._told_of(_reason(error))
            raise self._away(held, error) from error
        finally:
            self._num_asking -= 1
        self.problem = ""
        return result

    def _away(self, held: "_Held", error: Exception) -> ToolServerAway:
        """Only what shows that the connection is over ends it: others may be waiting for theirs."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

        name = self.spec.name
        if isinstance(error, MCPError):
            is_over = error.code in (CONNECTION_CLOSED, INVALID_REQUEST)
            if self.spec.url and error.code == CONNECTION_CLOSED:
                is_over = not str(error).startswith("SSE stream")  # that of this answer alone
            if error.code != UNREACHED and not is_over:
                return ToolServerAway(f"{name}: {_short(error)}", was_asked=True)
        else:
            is_over = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
            if not is_over:
                reason = f"{name} has answered what is no answer"
                logger.warning("%s: %s", reason, type(error).__name__)
                return ToolServerAway(reason, was_asked=True)
        self.problem = self._told_of(_reason(error))
        logger.warning("tool server %s", self.problem)
        if is_over:
            held.end()
        return ToolServerAway(f"the connection to {name} broke", was_asked=True)

    async def _connected(self) -> "tuple[_Held, Client]":
        async with self._lock:
            held = self._held
            if held is None or held.is_over:
                if self._is_closing:
                    raise ToolServerAway("the process is ending")
                if monotonic() < self._not_before_s:
                    raise ToolServerAway(f"{self.spec.name} cannot be reached")
                await asyncio.to_thread(_load)
                held = self._held = _Held(self.spec, self._failed)
        try:
            return held, await asyncio.shield(held.ready)
        except _CannotOpen:
            raise ToolServerAway(f"{self.spec.name} cannot be reached") from None

    def _failed(self, reason: str) -> None:
        self.problem = self._told_of(reason)
        self._not_before_s = monotonic() + _PAUSE_S
        logger.warning("tool server %s", self.problem)

    def _told_of(self, reason: str) -> str:
        return f"{self.spec.name} cannot be reached: {self.spec.without_secrets(reason)}"


class _CannotOpen(Exception):
    pass


class _Held:
    """The protocol's client has to be closed by the task that opened it, so one task holds it, and
    others ask through it. Who waits for it may go: it opens all the same, for the next."""

    def __init__(self, spec: ToolServerSpec, failed: Callable[[str], None]) -> None:
        self.ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda ready: ready.exception())  # nobody may have waited
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._hold(spec, failed), name=f"tools of {spec.name}")

    @property
    def is_open(self) -> bool:
        return self.ready.done() and not self.is_over

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    def end(self) -> None:
        """It is closed in a moment; whoever comes now makes another one."""
        self._ended.set()

    async def closed(self, timeout_s: float) -> None:
        self.end()
        if not self.ready.done():
            self._task.cancel()
        done, _ = await asyncio.wait([self._task], timeout=timeout_s)
        if not done:
            self._task.cancel()

    async def _hold(self, spec: ToolServerSpec, failed: Callable[[str], None]) -> None:
        reason = said = ""
        try:
            async with last_words() as words:
                try:
                    opening = asyncio.timeout(CONNECT_TIMEOUT_S)
                    async with opening, _opened(spec, words.file) as client:
                        opening.reschedule(None)
                        self.ready.set_result(client)
                        await self._ended.wait()
                finally:
                    said = await words.said()
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            reason = "it does not answer"
        except BaseException as error:  # groups of them, too
            reason = _reason(error)
        finally:
            if reason and not self.is_over:
                failed(": ".join(filter(None, (reason, said))))
            self._ended.set()
            if not self.ready.done():
                self.ready.set_exception(_CannotOpen())


async def _all_listed(client: "Client") -> list["Listed"]:
    found: list[Listed] = []
    cursor: str | None = None
    for _ in range(MAX_LISTED):  # a page may be empty
        page: ListToolsResult = await client.list_tools(cursor=cursor, cache_mode="refresh")
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) >= MAX_LISTED:
            break
    return found[:MAX_LISTED]


def _load() -> None:
    import mcp  # noqa: F401


@asynccontextmanager
async def _opened(spec: ToolServerSpec, errors: Any) -> "AsyncGenerator[Client]":
    from mcp import Client
    from mcp.types import Implementation

    us = Implementation(name="Vitrine", version="0.1.0")
    if spec.command:
        async with Client(started(spec, errors), client_info=us) as client:
            yield _unchecked(client)
        return
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(spec.timeout_s, connect=5.0)
    transport = BoundedTransport(max(spec.timeout_s, LIST_TIMEOUT_S))
    async with (
        httpx2.AsyncClient(
            headers=dict(spec.headers), timeout=timeout, transport=transport
        ) as http,
        Client(streamable_http_client(spec.url, http_client=http), client_info=us) as client,
    ):
        yield _unchecked(client)


def _unchecked(client: "Client") -> "Client":
    """Results are texts to us. To hold them against the schema that their server has sent along could
    take for ever: a pattern may try 2^n ways, on the event loop."""

    async def take(name: str, result: Any) -> None:
        pass

    client.session.validate_tool_result = take  # type: ignore[method-assign]
    return client


def _reason(error: BaseException) -> str:
    """The first of a group, by what it says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return _short(error)


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:300]
