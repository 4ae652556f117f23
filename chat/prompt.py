"""A conversation as the messages that a chat template renders, within a budget of tokens. Pure."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from inference import ChatMessage, ContextTooLong

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


def fit(
    messages: list[ChatMessage],
    encode: Callable[[list[ChatMessage]], tuple[int, ...]],
    max_prompt_tokens: int,
) -> tuple[list[ChatMessage], tuple[int, ...]]:
    """The newest turns that fit, and their token ids.

    The system message and the last user message are always kept; whole turns are dropped from the
    oldest on. Raises ContextTooLong when not even those fit.
    """
    ids = encode(messages)
    while len(ids) > max_prompt_tokens:
        shorter = _without_oldest_turn(messages)
        if shorter is None:
            raise ContextTooLong(num_prompt_tokens=len(ids), max_context_tokens=max_prompt_tokens)
        messages = shorter
        ids = encode(messages)
    return messages, ids


def _without_oldest_turn(messages: list[ChatMessage]) -> list[ChatMessage] | None:
    """Drop the first user message and all that answers it; None when only the last turn is left."""
    users = [i for i, m in enumerate(messages) if m["role"] == "user"]
    if len(users) < 2:
        return None
    return messages[: users[0]] + messages[users[1] :]
