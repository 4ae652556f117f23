"""The tools that are run for a model: our own, and those of tool servers (servers/). A tool is a name, a
schema and a function."""

from collections.abc import Iterable

from chat.tools.base import Tool, ToolFailed, run_tool
from chat.tools.calculator import CALCULATOR
from chat.tools.clock import CLOCK

BUILT_IN: dict[str, Tool] = {tool.name: tool for tool in (CALCULATOR, CLOCK)}


_of_servers: dict[str, Tool] = {}


def offer(tools: Iterable[Tool]) -> None:
    """These are the tools of other programs from here on."""
    global _of_servers
    _of_servers = {tool.name: tool for tool in tools}


def tools_named(names: Iterable[str]) -> tuple[Tool, ...]:
    """Those of the names that are still a tool: a saved answer may name one that is gone."""
    known = BUILT_IN | _of_servers
    return tuple(known[name] for name in names if name in known)


__all__ = ["BUILT_IN", "Tool", "ToolFailed", "offer", "run_tool", "tools_named"]
