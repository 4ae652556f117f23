"""Remember something about the user for chats that begin later. Whose that is, is said where an answer
begins (chat/remembering.py)."""

from typing import Any

from chat.engine import context_tokens_by_files
from chat.tools.base import Tool, ToolFailed
from inference import BUILTIN

LEAST_CONTEXT_TOKENS = 4096


def _of_nobody(arguments: dict[str, Any]) -> str:
    raise ToolFailed("nothing can be remembered here")


REMEMBER = Tool(
    name="remember",
    description=(
        "Remember one lasting fact about the user, for future conversations. Use it only for what the"
        " user says about themselves or asks to be remembered."
    ),
    parameters={
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": "The fact as one short sentence, such as: Lives in Porto.",
            }
        },
        "required": ["text"],
    },
    run=_of_nobody,
    is_trusted=True,
)


def is_shown_to(model: str) -> bool:
    """The built-in model is too small for a tool more, and a short context has no room for it."""
    context_tokens = context_tokens_by_files(model)
    return model != BUILTIN and (context_tokens is None or context_tokens >= LEAST_CONTEXT_TOKENS)


def without_unfit(model: str, params: dict[str, Any]) -> dict[str, Any]:
    """The params of a run as they are for this model."""
    tools: list[str] = params.get("tools", [])
    if is_shown_to(model) or REMEMBER.name not in tools:
        return params
    return params | {"tools": [name for name in tools if name != REMEMBER.name]}
