"""What a tool is, and how a call of one is answered."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from chat.off_loop import off_loop
from chat.storable import storable

MAX_RESULT_CHARS = 20_000
TIMEOUT_S = 10.0


class ToolFailed(Exception):
    """The tool could not do it; the text goes to the model, so that it can say so."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What stands in a chat: `questions` as their user wrote them, and of tools that were called the
    name and the result."""

    questions: tuple[str, ...]
    results: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` takes the call's arguments, and with `is_told_user` who asks, and returns text; it raises
    ToolFailed for bad ones. A plain function is called in a thread.

    `has_side_effects`: it changes something outside of the answer, or tells something to the outside; so
    it may, unless it says otherwise. `always_asks`: and never without a person's word. `is_known`:
    whether a call tells the outside nothing but what a search or the user has named before; any other
    asks. `is_trusted`: its results are our own and say nothing that others have written; `is_ours`:
    whether one of them is. `server`: whose it is, if not ours. `facts_of`: what the glass tells of a
    result.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[..., str] | Callable[..., Awaitable[str]]
    has_side_effects: bool = True
    is_trusted: bool = False
    always_asks: bool = False
    server: str = ""
    title: str = ""
    timeout_s: float = TIMEOUT_S
    is_known: Callable[[dict[str, Any], Heard], bool] | None = None
    is_told_user: bool = False
    is_ours: Callable[[str], bool] | None = None
    facts_of: Callable[[str], dict[str, Any]] | None = None

    def schema(self) -> dict[str, Any]:
        """The tool as models and OpenAI clients know it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


async def run_tool(
    tools: dict[str, Tool], name: str, arguments: str, user: str = ""
) -> tuple[str, bool]:
    """Answer one call: (text, whether it is an error). Never raises for what a model got wrong."""
    tool = tools.get(name)
    if tool is None:
        return storable(f"error: there is no tool named {name}"), True
    try:
        values = json.loads(arguments)
        async with asyncio.timeout(tool.timeout_s):
            result = await _result_of(tool, values, user)
    except RecursionError:
        return "error: the arguments are too deep", True
    except (ToolFailed, ValueError) as error:
        return storable(f"error: {error}")[:MAX_RESULT_CHARS], True
    except TimeoutError:
        return f"error: {name} took longer than {tool.timeout_s:g} s", True
    return storable(result[:MAX_RESULT_CHARS]), False


async def _result_of(tool: Tool, values: dict[str, Any], user: str) -> str:
    run: Any = tool.run
    given = (values, user) if tool.is_told_user else (values,)
    result: str = await (run(*given) if iscoroutinefunction(run) else off_loop(run, *given))
    return result
