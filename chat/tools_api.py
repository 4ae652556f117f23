"""REST of the tool servers that one may use, under /api."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext
from ninja import Router

from chat.db import in_db
from chat.rights import Rights, rights_of
from chat.tools.servers.offering import ServerState, states
from chat.tools.servers.spec import IMAGES, ToolServerSpec

router = Router()


@router.get("/tools")
async def list_tool_servers(request: HttpRequest) -> dict[str, Any]:
    """The tool servers that chats of yours may use, and what each offers. A chat names those that it
    uses in `tool_servers` of its setup."""
    return {"servers": await in_db(tool_server_values)(rights_of(request))}


def tool_server_values(rights: Rights) -> list[dict[str, Any]]:
    """Asks the database where some are for groups alone."""
    mine = {spec.name for spec in rights.tool_servers()}
    return [_value(rights, state) for state in states() if state.spec.name in mine]


def _value(rights: Rights, state: ServerState) -> dict[str, Any]:
    """What is wrong with it may name what only operators know."""
    return {
        "name": state.spec.name,
        "title": str(state.spec.title),
        "description": _description(rights, state.spec),
        "is_away": state.state == "away",
        "is_own": state.spec.is_own,
        "tells_others": state.spec.tells_others,
        "leaves_trace": state.spec is IMAGES,  # what it makes is kept: it is in no temporary chat
        "tools": [
            {"name": tool.name, "title": tool.title, "description": tool.description}
            for tool in state.tools
        ],
    }


def _description(rights: Rights, spec: ToolServerSpec) -> str:
    """Ours is in its reader's language; pictures say who draws them for this one."""
    if spec is not IMAGES:
        return str(spec.description)
    drawing = rights.models("image")[0].spec
    text = gettext("Drawn by %(model)s on another server, which is told what to draw")
    return text % {"model": drawing.title or drawing.name}
