"""Values of ours in OpenAI's shapes, both ways."""

import json
from collections.abc import Iterable
from typing import Any

from chat import parts as message_parts
from chat.events import ToolCall
from chat.openai_schemas import ChatMessageIn
from chat.prompt import call_arguments
from inference import ChatMessage, ChatTokenizer, TokenLogprob


def chat_message(message: ChatMessageIn, *, is_sent_on: bool = False) -> ChatMessage:
    """A message as chat templates want it: content as text, arguments as an object. `is_sent_on` says
    that another server reads it: arguments are what the caller wrote, whatever that is."""
    arguments_of = _as_sent_on if is_sent_on else call_arguments
    role = "system" if message.role == "developer" else message.role
    result: ChatMessage = {"role": role, "content": message.text}
    if message.images:
        result["images"] = message.images
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
                    "arguments": arguments_of(call.function.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return result


def _as_sent_on(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
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


def logprobs_body(tokenizer: ChatTokenizer, logprobs: Iterable[TokenLogprob]) -> dict[str, Any]:
    """A choice's log probabilities."""
    return {"content": token_bodies(tokenizer, logprobs), "refusal": None}


def token_bodies(
    tokenizer: ChatTokenizer, logprobs: Iterable[TokenLogprob]
) -> list[dict[str, Any]]:
    """Token by token. A token may be a part of a character."""
    bodies = []
    for rated in logprobs:
        top = [_token_body(tokenizer, *likely) for likely in rated.top]
        own = _token_body(tokenizer, rated.token_id, rated.logprob)
        bodies.append(own | {"top_logprobs": top})
    return bodies


def text_logprobs_body(
    tokenizer: ChatTokenizer, rated: Iterable[TokenLogprob | int], start: int
) -> dict[str, Any]:
    """The same as completions tell it, for a piece of text that begins `start` characters in.

    A bare id is the first token of a prompt, which nothing rates.
    """
    body: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for token in rated:
        token_id = token if isinstance(token, int) else token.token_id
        text = tokenizer.token_bytes(token_id).decode(errors="replace")
        body["tokens"].append(text)
        body["text_offset"].append(start)
        start += len(text)
        if isinstance(token, int):
            body["token_logprobs"].append(None)
            body["top_logprobs"].append(None)
            continue
        likely = [_token_body(tokenizer, *top) for top in token.top]
        body["token_logprobs"].append(_written(token.logprob))
        body["top_logprobs"].append({top["token"]: top["logprob"] for top in likely})
    return body


def _token_body(tokenizer: ChatTokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    coded = tokenizer.token_bytes(token_id)
    return {
        "token": coded.decode(errors="replace"),
        "bytes": list(coded),
        "logprob": _written(logprob),
    }


def _written(logprob: float) -> float:
    """-inf is no JSON; OpenAI writes -9999 for what cannot be."""
    return max(logprob, -9999.0)
