"""The tools that are run for a model: our own, and those of tool servers (servers/). A tool is a name, a
schema and a function.

Two are in every chat; `remember` is where a chat may add to what is known of its user
(chat/remembering.py); Python, the search in the web and pictures (chat/making_pictures.py) are picked
chat by chat, as if they were a server's, since their schemas are read with every prompt, and small
models are led astray by what they do not need.
"""

from collections.abc import Iterable

from chat.tools.base import Tool, ToolFailed, run_tool
from chat.tools.calculator import CALCULATOR
from chat.tools.clock import CLOCK
from chat.tools.create_image import CREATE_IMAGE
from chat.tools.open_page import OPEN_PAGE
from chat.tools.python import PYTHON
from chat.tools.remember import REMEMBER
from chat.tools.web_search import WEB_SEARCH

BUILT_IN: dict[str, Tool] = {tool.name: tool for tool in (CALCULATOR, CLOCK)}
PICKED: dict[str, tuple[Tool, ...]] = {
    "python": (PYTHON,),
    "search": (WEB_SEARCH, OPEN_PAGE),
    "images": (CREATE_IMAGE,),
}
"""By the name that they are picked by, as a server's would be."""
_OWN = (
    BUILT_IN
    | {REMEMBER.name: REMEMBER}
    | {tool.name: tool for of_one in PICKED.values() for tool in of_one}
)

_of_servers: dict[str, Tool] = {}


def offer(tools: Iterable[Tool]) -> None:
    """These are the tools of other programs from here on."""
    global _of_servers
    _of_servers = {tool.name: tool for tool in tools}


def tools_named(names: Iterable[str]) -> tuple[Tool, ...]:
    """Those of the names that are still a tool: a saved answer may name one that is gone."""
    known = _OWN | _of_servers
    return tuple(known[name] for name in names if name in known)


__all__ = [
    "BUILT_IN",
    "CREATE_IMAGE",
    "PICKED",
    "REMEMBER",
    "Tool",
    "ToolFailed",
    "offer",
    "run_tool",
    "tools_named",
]
