"""The current date and time."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from chat.tools.base import Tool, ToolFailed


def _run(arguments: dict[str, Any]) -> str:
    name = arguments.get("timezone") or timezone.get_default_timezone_name()
    try:
        zone = ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolFailed(f"there is no time zone named {name}") from None
    return f"{datetime.now(zone):%Y-%m-%d %H:%M %A} {name}"


CLOCK = Tool(
    name="clock",
    description="Tell the current date and time.",
    parameters={
        "type": "object",
        "properties": {
            "timezone": {"type": "string", "description": "An IANA name such as Europe/Berlin"}
        },
        "required": [],
    },
    run=_run,
    has_side_effects=False,
    is_trusted=True,
)
