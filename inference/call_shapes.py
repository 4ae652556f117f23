"""How a chat template wants to be handed the calls of earlier turns, which none says of itself. Pure."""

import json
from itertools import product
from typing import Any, NamedTuple

from inference.chat_messages import ChatMessage


class CallShape(NamedTuple):
    """What a chat template is handed of the calls of earlier turns."""

    has_texts: bool  # arguments as JSON text, else as an object
    stands_alone: bool  # a message of calls has no content, not even an empty one


CALL_SHAPES = [CallShape(*shape) for shape in product((False, True), repeat=2)]
PROBED_TEXT = "a probed text"
PROBED = {"probed": "a value"}
PROBED_TOOL = {
    "type": "function",
    "function": {"name": "probed_function", "parameters": {"type": "object", "properties": {}}},
}
PROBE: list[ChatMessage] = [
    {"role": "user", "content": "a question"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "probed001",  # Mistral's templates take nothing but nine characters
                "type": "function",
                "function": {"name": "probed_function", "arguments": PROBED},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "probed001", "name": "probed_function", "content": "a result"},
]


def in_shape(message: ChatMessage, shape: CallShape) -> list[ChatMessage]:
    """Text in front of calls is a message of its own where calls stand alone."""
    if not message.get("tool_calls"):
        return [message]
    calls = message["tool_calls"]
    if shape.has_texts:
        calls = [{**call, "function": _with_text(call["function"])} for call in calls]
    called = {**message, "tool_calls": calls}
    if not shape.stands_alone:
        return [called]
    said = {"role": message["role"], "content": message["content"]}
    return [*([said] if message["content"] else []), {**called, "content": None}]


def _with_text(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**function, "arguments": arguments}
