"""Tool servers, out of the file that `VITRINE_MCP` names."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from chat.tools.servers.spec import PYTHON, ToolServerSpec, tool_servers
from webapp.env import env_secret


def tool_server_specs(file_name: str, *, has_python: bool) -> tuple[ToolServerSpec, ...]:
    """Ours first, and without a file no others. Raises ImproperlyConfigured, which quotes no secrets."""
    own = (PYTHON,) if has_python else ()
    if not file_name:
        return own
    try:
        found = tool_servers(Path(file_name).expanduser(), env_secret)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_MCP: {error}.") from None
    if {spec.name for spec in own} & {spec.name for spec in found}:
        raise ImproperlyConfigured(
            "VITRINE_MCP: Vitrine's own is called python: take another name, or VITRINE_PYTHON=false."
        )
    return (*own, *found)
