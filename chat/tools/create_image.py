"""Draw a picture into the chat. Who may, and where it is kept, is said where an answer begins
(chat/making_pictures.py).

The prompt is told to another server, which is paid for it: so once words of others are in the chat, its
user is asked first (chat/approvals.py).
"""

import json
from typing import Any

from chat.tools.base import Tool, ToolFailed

SIZES = {"square": "1024x1024", "portrait": "1024x1536", "landscape": "1536x1024"}
"""In pixels, as OpenAI's API has them and most servers of pictures take them."""
MAX_PROMPT_CHARS = 4_000
# A server's own limit (VITRINE_MODELS) comes first, and says more: this is its longest.
_TIMEOUT_S = 5 * 3600.0


def asked_in(arguments: Any) -> tuple[str, str]:
    """The prompt, and a name of SIZES. Raises ToolFailed."""
    values: dict[str, Any] = arguments if isinstance(arguments, dict) else {}
    prompt, size = values.get("prompt"), values.get("size") or "square"
    if not isinstance(prompt, str) or not prompt.strip():
        raise ToolFailed("'prompt' is missing")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise ToolFailed(f"the prompt is longer than {MAX_PROMPT_CHARS:,} characters")
    if size not in SIZES:
        raise ToolFailed(f"'size' is one of {', '.join(SIZES)}")
    return prompt.strip(), size


def _of_nobody(arguments: dict[str, Any]) -> str:
    raise ToolFailed("nothing can be drawn here")


def value_in(result: str) -> dict[str, Any]:
    """What a result tells of a picture; nothing where there is none."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("picture"), str) else {}


def _is_ours(result: str) -> bool:
    """Without a word of the server's: one that has written the prompt anew may say anything."""
    value = value_in(result)
    return bool(value) and not value.get("rewritten")


def told_in(result: str) -> dict[str, Any]:
    """For the glass: which model has drawn, and of which size."""
    value = value_in(result)
    return {name: value[name] for name in ("model", "size") if name in value}


CREATE_IMAGE = Tool(
    name="create_image",
    description=(
        "Draw a picture of what the user asks for. The user sees it in the chat as soon as it is drawn:"
        " do not repeat its address or id. Describe the whole picture each time; nothing is known of"
        " those before."
    ),
    parameters={
        "type": "object",
        "properties": {
            "prompt": {
                "type": "string",
                "description": "What is to be seen, and in which style, in full sentences",
            },
            "size": {"type": "string", "enum": list(SIZES), "description": "square if not given"},
        },
        "required": ["prompt"],
    },
    run=_of_nobody,
    title="Create image",
    server="images",
    timeout_s=_TIMEOUT_S,
    is_ours=_is_ours,
    facts_of=told_in,
)
