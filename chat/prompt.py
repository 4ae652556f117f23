"""A conversation as the messages that a chat template renders. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from chat.json_texts import MAX_DEPTH, depth_of
from inference import ChatMessage

DEFAULT_SYSTEM_PROMPT = "You are Vitrine, a helpful assistant."

Parts = list[dict[str, Any]]


def assistant_messages(parts: Parts) -> list[ChatMessage]:
    """An answer's parts as template messages: text and calls, results, text …

    Reasoning is left out: models are not shown their old thoughts again. So is white space in front:
    a template ends the prompt with a line break, which would become another token with more behind
    it, and the next prompt would not begin with this one.
    """
    messages: list[ChatMessage] = []
    current: ChatMessage = {"role": "assistant", "content": ""}
    for part in parts:
        match part["type"]:
            case "text":
                text = part["text"]
                current["content"] += text if current["content"] else text.lstrip()
            case "tool_call":
                function = {"name": part["name"], "arguments": call_arguments(part["arguments"])}
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


def call_arguments(text: str) -> dict[str, Any]:
    """Always an object: Llama's, Mistral's and Qwen3-Coder's templates cannot render a text.

    Calls of other systems, which their exports and callers bring along, may have been made with code,
    or nothing: a stream of a call without arguments adds up to an empty text.
    """
    try:
        arguments = json.loads(text or "{}")
        if depth_of(arguments) > MAX_DEPTH:
            # Its escapes undone: who judges the prompt reads letters.
            return {"input": json.dumps(arguments, ensure_ascii=False)}
    except (ValueError, RecursionError):
        return {"input": text}
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def joined(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Texts of the assistant that follow each other as one: templates insist on alternation."""
    result: list[ChatMessage] = []
    for message in messages:
        last = result[-1] if result else None
        is_pair = last is not None and last["role"] == message["role"] == "assistant"
        if last is not None and is_pair and not last.get("tool_calls"):
            result[-1] = {**message, "content": last["content"] + message["content"]}
        else:
            result.append(message)
    return result


def with_system(system_prompt: str, turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The stable prefix first, so that the next turn's prompt begins with this one's."""
    return [system_message(system_prompt), *turns]


def system_message(*texts: str) -> ChatMessage:
    """One message of all texts that there are: most templates take no second one."""
    content = "\n\n".join(text.strip() for text in texts if text.strip())
    return {"role": "system", "content": content or DEFAULT_SYSTEM_PROMPT}
