"""About how many tokens there are, where another server has not told."""

import json
from collections.abc import Iterable
from typing import Any

from inference.call_forms import Call
from inference.parsing import Segment
from inference.upstreams.messages import ChatMessage, ChatRequest

IMAGE_TOKENS = 1_600  # of a large one, about: who counts too many fits in
_BYTES_PER_TOKEN = 3  # of most texts there are more; who counts too many spends less, and fits in


def about_tokens(*texts: str) -> int:
    """Of all of them together."""
    return sum(len(text.encode(errors="replace")) for text in texts) // _BYTES_PER_TOKEN


def about_image_tokens(messages: Iterable[ChatMessage]) -> int:
    """Of the images in them."""
    return sum(len(message.get("images", ())) for message in messages) * IMAGE_TOKENS


def text_of(segment: Segment) -> str:
    """What a model has written for it, about."""
    return f"{segment.name}{segment.arguments}" if isinstance(segment, Call) else segment.text


def about_prompt_tokens(request: ChatRequest) -> int:
    """Of all that the server is to read: messages, the calls in them, tools, and the answer so far."""
    texts = [request.begun, *map(_as_text, request.tools)]
    for message in request.messages:
        texts.append(_as_text(message.get("content") or ""))
        texts += [_as_text(call["function"]) for call in message.get("tool_calls") or ()]
    return about_tokens(*texts) + about_image_tokens(request.messages)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
