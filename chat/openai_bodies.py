"""Values of ours in OpenAI's shapes, both ways."""

import json
from collections.abc import Iterable
from typing import Any

from chat import parts as message_parts
from chat.events import RunUsage, ToolCall
from chat.openai_schemas import ChatMessageIn
from inference import ChatMessage, ChatTokenizer, TokenLogprob


def chat_message(message: ChatMessageIn) -> ChatMessage:
    """A message as chat templates want it: content as text, arguments as an object."""
    role = "system" if message.role == "developer" else message.role
    result: ChatMessage = {"role": role, "content": message.text}
    if message.name is not None:
        result["name"] = message.name  # for templates that know names
    if message.tool_call_id is not None:
        result["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        result["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": _arguments(call.function.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return result


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a model's malformed arguments, sent back as they were


def message_body(parts: message_parts.Parts) -> dict[str, Any]:
    """An assistant's message."""
    calls = [part for part in parts if part["type"] == "tool_call"]
    reasoning = "".join(part["text"] for part in parts if part["type"] == "reasoning")
    message: dict[str, Any] = {
        "role": "assistant",
        "content": message_parts.text_of(parts) or (None if calls else ""),
        "refusal": None,
    }
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            call_body(ToolCall(part["id"], part["name"], part["arguments"])) for part in calls
        ]
    return message


def call_body(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def usage_body(usages: list[RunUsage]) -> dict[str, Any]:
    """The usage of all choices; they share one prompt, which counts once."""
    prompt_tokens = max((usage.prompt_tokens for usage in usages), default=0)
    completion_tokens = sum(usage.completion_tokens for usage in usages)
    cached_tokens = max((usage.cached_tokens for usage in usages), default=0)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def logprobs_body(tokenizer: ChatTokenizer, logprobs: Iterable[TokenLogprob]) -> dict[str, Any]:
    """A choice's log probabilities, token by token. A token may be a part of a character."""
    content = []
    for rated in logprobs:
        top = [_token_body(tokenizer, *likely) for likely in rated.top]
        own = _token_body(tokenizer, rated.token_id, rated.logprob)
        content.append(own | {"top_logprobs": top})
    return {"content": content, "refusal": None}


def _token_body(tokenizer: ChatTokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    coded = tokenizer.token_bytes(token_id)
    # -inf is no JSON; OpenAI writes -9999 for what cannot be.
    return {
        "token": coded.decode(errors="replace"),
        "bytes": list(coded),
        "logprob": max(logprob, -9999.0),
    }
