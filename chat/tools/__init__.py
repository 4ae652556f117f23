"""The tools that Vitrine itself runs for a model. A tool is a name, a schema and a function."""

from chat.tools.base import Tool, ToolFailed, run_tool
from chat.tools.calculator import CALCULATOR
from chat.tools.clock import CLOCK

BUILT_IN: dict[str, Tool] = {tool.name: tool for tool in (CALCULATOR, CLOCK)}

__all__ = ["BUILT_IN", "Tool", "ToolFailed", "run_tool"]
