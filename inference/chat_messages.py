"""Messages of a chat in the shapes that templates read. Pure."""

import json
from typing import Any

from inference.images import Image, pieces_of

ChatMessage = dict[str, Any]
"""{"role", "content"}, for assistants also "tool_calls", for tools "tool_call_id" (OpenAI's shape); with
images as `inference.images` says."""


def in_parts(message: ChatMessage) -> ChatMessage:
    if message["content"] is None:
        return message
    pieces = pieces_of(message) if message.get("images") else [message["content"]]
    parts = [
        {"type": "image"} if isinstance(piece, Image) else {"type": "text", "text": piece}
        for piece in pieces
    ]
    return {**{k: v for k, v in message.items() if k != "images"}, "content": parts}


def is_text(messages: list[ChatMessage]) -> bool:
    try:
        texts = [{**message, "images": ()} for message in messages]  # those are ASCII
        json.dumps(texts, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def system_in_first_user(messages: list[ChatMessage]) -> list[ChatMessage] | None:
    """The chat without a system message of its own; None where it begins otherwise."""
    match messages:
        case [{"role": "system", "content": system}, {"role": "user", "content": text} as user, *_]:
            return [{**user, "content": f"{system}\n\n{text}"}, *messages[2:]]
    return None
