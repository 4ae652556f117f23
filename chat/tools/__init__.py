"""The tools that Vitrine itself runs for a model. A tool is a name, a schema and a function."""

from collections.abc import Iterable

from chat.tools.base import Tool, ToolFailed, run_tool
from chat.tools.calculator import CALCULATOR
from chat.tools.clock import CLOCK

BUILT_IN: dict[str, Tool] = {tool.name: tool for tool in (CALCULATOR, CLOCK)}


def tools_named(names: Iterable[str]) -> tuple[Tool, ...]:
    """Those of the names that are still a tool: a saved answer may name one that is gone."""
    return tuple(BUILT_IN[name] for name in names if name in BUILT_IN)


__all__ = ["BUILT_IN", "Tool", "ToolFailed", "run_tool", "tools_named"]
