"""Tool servers, out of the file that `VITRINE_MCP` names."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from chat.tools.servers.spec import ToolServerSpec, tool_servers
from webapp.env import env_secret


def tool_server_specs(file_name: str) -> tuple[ToolServerSpec, ...]:
    """None without a file. Raises ImproperlyConfigured, which quotes no secrets."""
    if not file_name:
        return ()
    try:
        return tool_servers(Path(file_name).expanduser(), env_secret)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_MCP: {error}.") from None
