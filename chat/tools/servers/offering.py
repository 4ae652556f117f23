"""The tool servers of this process: who is connected, and what models can be shown of them now."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.db import DataError, IntegrityError, connection

from chat import tools
from chat.db import in_db
from chat.tool_models import Asking, ServerTool
from chat.tools import python, web_search
from chat.tools.base import Tool, ToolFailed
from chat.tools.servers.connection import ServerConnection, ToolServerAway
from chat.tools.servers.definitions import pin
from chat.tools.servers.results import text_of
from chat.tools.servers.spec import ToolServerSpec

logger = logging.getLogger(__name__)

# Of all rows: the latest time alone would miss what a process whose clock is behind has written, and
# what was begun before the latest and ended after it.
_STAMP = """SELECT count(*)::text || ' ' || coalesce(sum(
hashtextextended(id::text || ' ' || updated_at::text, 0)::numeric), 0)::text FROM chat_servertool"""

_connections: dict[str, ServerConnection] = {}
_stamp: str | None = None
_offered: Mapping[str, tuple[Tool, ...]] = {}


@dataclass(frozen=True, slots=True)
class ServerState:
    """How a server is, as this process knows it; `tools` are those that are offered."""

    spec: ToolServerSpec
    state: Literal["connected", "away", "new"]
    problem: str
    tools: tuple[Tool, ...]


def states() -> list[ServerState]:
    """Of all, in the order of the file."""
    return [_state_of(spec) for spec in settings.TOOL_SERVERS]


def _state_of(spec: ToolServerSpec) -> ServerState:
    offered = _offered_by(spec)
    if spec.is_own:
        return ServerState(spec, "connected", "", offered)
    known = _connections.get(spec.name)
    if known is None:
        return ServerState(spec, "new", "", offered)
    return ServerState(spec, "connected" if known.is_open else "away", known.problem, offered)


def names_of(servers: Iterable[str]) -> tuple[str, ...]:
    """Of the tools that are offered by these servers, as models call them; always in the same order, so
    that a prompt begins as the one before."""
    wanted = set(servers)
    named = (spec for spec in settings.TOOL_SERVERS if spec.name in wanted)
    return tuple(tool.name for spec in named for tool in _offered_by(spec))


def _offered_by(spec: ToolServerSpec) -> tuple[Tool, ...]:
    """A server may have the name of one of ours that this site does not have."""
    return tools.PICKED[spec.name] if spec.is_own else _offered.get(spec.name, ())


def others() -> list[ToolServerSpec]:
    """Those that are other programs."""
    return [spec for spec in settings.TOOL_SERVERS if not spec.is_own]


async def ask_servers() -> None:
    """Connect to those that are not, and keep what they offer now. In the system's scope."""
    await asyncio.gather(*map(_ask, others()))
    await offer()


async def _ask(spec: ToolServerSpec) -> None:
    try:
        listed = await _connection_to(spec).listed()
    except ToolServerAway:
        return  # told already; what it offered before goes on being shown
    except Exception:  # of an answer that is none; the others are to be heard all the same
        logger.exception("tool server %s cannot be understood", spec.name)
        return
    try:
        await in_db(pin)(spec, listed)
    except (DataError, IntegrityError):
        logger.exception("what tool server %s offers cannot be kept", spec.name)


async def offer() -> None:
    """Show models what the rows say now. In any scope: they are nobody's own."""
    if others():
        await in_db(_read)()


def _read() -> None:
    global _stamp, _offered
    with connection.cursor() as cursor:
        cursor.execute(_STAMP)
        (stamp,) = cursor.fetchone()
    if stamp == _stamp:
        return
    found: dict[str, list[Tool]] = {spec.name: [] for spec in others()}
    rows = ServerTool.objects.filter(is_enabled=True, is_listed=True, proposed__isnull=True)
    for row in rows.filter(server__in=found).order_by("name"):
        found[row.server].append(_tool(row))
    _offered = {server: tuple(of_server) for server, of_server in found.items()}
    tools.offer(tool for of_server in _offered.values() for tool in of_server)
    _stamp = stamp


async def close() -> None:
    """The process ends."""
    await asyncio.gather(
        python.close(), web_search.close(), *(one.close() for one in _connections.values())
    )
    _connections.clear()


def _connection_to(spec: ToolServerSpec) -> ServerConnection:
    if spec.name not in _connections:
        _connections[spec.name] = ServerConnection(spec)
    return _connections[spec.name]


def _tool(row: ServerTool) -> Tool:
    spec = next(spec for spec in settings.TOOL_SERVERS if spec.name == row.server)
    tool_name, name = row.tool, row.name

    async def run(arguments: dict[str, Any]) -> str:
        if not isinstance(arguments, dict):
            raise ToolFailed("the arguments are no object")
        if not tools.tools_named([name]):  # while somebody was asked, perhaps
            raise ToolFailed("this tool is not offered any more")
        try:
            return text_of(await _connection_to(spec).call(tool_name, arguments))
        except ToolServerAway as away:
            doubt = "; it may have been done all the same" if away.was_asked else ""
            raise ToolFailed(f"{away}{doubt}") from None

    return Tool(
        name=row.name,
        description=row.definition.get("description") or row.title,
        parameters=row.definition["parameters"],
        run=run,
        has_side_effects=row.asks != Asking.NEVER,
        always_asks=row.asks == Asking.ALWAYS,
        server=row.server,
        title=row.title,
        timeout_s=spec.timeout_s + 1.0,  # its own limit comes first, and says more
    )
