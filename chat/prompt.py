"""A conversation as the messages that a chat template renders. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from inference import ChatMessage

DEFAULT_SYSTEM_PROMPT = "You are Vitrine, a helpful assistant."

Parts = list[dict[str, Any]]


def assistant_messages(parts: Parts) -> list[ChatMessage]:
    """An answer's parts as template messages: text and calls, results, text …

    Reasoning is left out: models are not shown their old thoughts again.
    """
    messages: list[ChatMessage] = []
    current: ChatMessage = {"role": "assistant", "content": ""}
    for part in parts:
        match part["type"]:
            case "text":
                current["content"] += part["text"]
            case "tool_call":
                # As an object: Llama's and Mistral's templates cannot render arguments as text.
                function = {"name": part["name"], "arguments": json.loads(part["arguments"])}
                call = {"id": part["id"], "type": "function", "function": function}
                current.setdefault("tool_calls", []).append(call)
            case "tool_result":
                if current.get("tool_calls") or current["content"]:
                    messages.append(current)
                    current = {"role": "assistant", "content": ""}
                messages.append(
                    {"role": "tool", "tool_call_id": part["id"], "content": part["content"]}
                )
    if current["content"] or current.get("tool_calls"):
        messages.append(current)
    return messages


def with_system(system_prompt: str, turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The stable prefix first, so that the next turn's prompt begins with this one's."""
    content = system_prompt or DEFAULT_SYSTEM_PROMPT
    return [{"role": "system", "content": content}, *turns]
