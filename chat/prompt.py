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
    *,
    max_context_tokens: int,
) -> tuple[list[ChatMessage], tuple[int, ...]]:
    """The newest turns that fit, and their token ids.

    The system message and the last user message are always kept; whole turns are dropped from the
    oldest on. Raises ContextTooLong when not even those fit; what of the context is no room for the
    prompt is kept for the answer. Encodes about log2(turns) times, and
    never much more text than fits.
    """
    if _num_chars(messages) <= max_prompt_tokens * _LIKELY_CHARS_PER_TOKEN:
        ids = encode(messages)
        if len(ids) <= max_prompt_tokens:
            return messages, ids
    starts = [i for i, m in enumerate(messages) if m["role"] == "user"] or [0]

    def newest(num_turns: int) -> list[ChatMessage]:
        return messages[: starts[0]] + messages[starts[-num_turns] :]

    # Twice as many turns each time until they no longer fit; then halve what lies between.
    fitting: tuple[int, tuple[int, ...]] | None = None
    low, high = 0, len(starts) + 1
    while low + 1 < high:
        num_turns = min(max(1, 2 * low), high - 1) if high > len(starts) else (low + high) // 2
        ids = encode(newest(num_turns))
        if len(ids) <= max_prompt_tokens:
            low, fitting = num_turns, (num_turns, ids)
        elif num_turns == 1:
            raise ContextTooLong(
                num_prompt_tokens=len(ids),
                max_context_tokens=max_context_tokens,
                num_reserved=max_context_tokens - max_prompt_tokens,
            )
        else:
            high = num_turns
    assert fitting is not None
    return newest(fitting[0]), fitting[1]


_LIKELY_CHARS_PER_TOKEN = 8  # more than of any usual text: such a chat is worth one try as a whole


def _num_chars(messages: list[ChatMessage]) -> int:
    return sum(len(message["content"]) for message in messages)
