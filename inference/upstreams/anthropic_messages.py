"""Anthropic's /v1/messages. Source: its published API description (version header 2023-06-01)."""

import json
from typing import Any

from inference.errors import InvalidParameter
from inference.images import Image, pieces_of
from inference.messages import FinishReason, Usage
from inference.parsing import Reasoning, Segment, Text
from inference.upstreams.messages import ChatMessage, ChatRequest
from inference.upstreams.problems import of_event
from inference.upstreams.spec import UpstreamSpec
from inference.upstreams.wire import call_or_text, count_of

_VERSION = "2023-06-01"
_MAX_TOKENS = 8192  # the parameter is required; every model since 2024 writes so many
_REASONS: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_SAME = ("temperature", "top_p", "top_k")


def address(base: str) -> str:
    """Where requests go; the version in the path may be left out, as its own clients do."""
    return f"{base.removesuffix('/v1')}/v1/messages"


def headers(spec: UpstreamSpec) -> dict[str, str]:
    key = {"x-api-key": spec.api_key} if spec.api_key else {}
    return {"anthropic-version": _VERSION, **key}


def body(spec: UpstreamSpec, url: str, request: ChatRequest) -> dict[str, Any]:
    """The body of one request. Raises InvalidParameter for what the protocol cannot say."""
    system = [m["content"] for m in request.messages if m["role"] == "system" and m["content"]]
    messages = _turns([m for m in request.messages if m["role"] != "system"])
    if request.begun.strip():
        # It refuses white space at the end of what it is to go on with.
        messages.append({"role": "assistant", "content": request.begun.rstrip()})
    return {
        "model": spec.model,
        "messages": messages,
        "stream": True,
        **({"system": "\n\n".join(system)} if system else {}),
        **_options(request),
        **_tools(request),
    }


def _options(request: ChatRequest) -> dict[str, Any]:
    options = dict(request.options)
    result: dict[str, Any] = {"max_tokens": options.pop("max_tokens", _MAX_TOKENS)}
    result |= {name: options.pop(name) for name in _SAME if name in options}
    if stop := options.pop("stop", None):
        result["stop_sequences"] = list(stop)
    for name in ("tool_choice", "parallel_tool_calls"):
        options.pop(name, None)  # these belong to the tools
    if options:
        raise InvalidParameter(min(options), "this model's server has no such parameter")
    return result


def _tools(request: ChatRequest) -> dict[str, Any]:
    if not request.tools:
        return _tools_of_the_past(request)
    functions = [tool["function"] for tool in request.tools]
    tools = [
        {
            "name": function["name"],
            "description": function.get("description") or "",
            "input_schema": function.get("parameters") or {"type": "object"},
            **({"strict": True} if function.get("strict") else {}),
        }
        for function in functions
    ]
    choice = _choice(request.options.get("tool_choice", "auto"))
    if request.options.get("parallel_tool_calls") is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return {"tools": tools, "tool_choice": choice}


def _tools_of_the_past(request: ChatRequest) -> dict[str, Any]:
    """None is offered; but messages with calls are refused unless their tools are defined."""
    calls = [call for m in request.messages for call in m.get("tool_calls") or ()]
    names = sorted({call["function"]["name"] for call in calls})
    if not names:
        return {}
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}


def _choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice["function"]["name"]}
    return {"type": {"required": "any"}.get(choice, choice)}


def _turns(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Users and assistants in turn; results of tools are a user's, all of one turn in one message."""
    turns: list[ChatMessage] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return [result]
    if message.get("images"):
        return [_block(piece) for piece in pieces_of(message)]
    text = [_block(content)] if content.strip() else []
    return text + [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": _object(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]


def _block(piece: str | Image) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    media_type, data = piece.source
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


def _object(arguments: Any) -> dict[str, Any]:
    """Arguments as an object; a model's malformed ones, sent back by a caller, as a text in one."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def _whole(block: dict[str, Any]) -> list[Segment]:
    match block.get("type"):
        case "text":
            return [Text(str(block["text"]))]
        case "thinking":
            return [Reasoning(str(block["thinking"]))]
        case "tool_use":
            return [call_or_text(str(block["name"]), json.dumps(block["input"]))]
    return []


class AnthropicReader:
    """See `wire.Reader`."""

    def __init__(self, host: str, key: str = "") -> None:
        self.reason: FinishReason | None = None
        self.usage = Usage()
        self.stop: str | None = None
        self._host, self._key = host, key
        self.is_over = False
        self._call: list[str] | None = None  # [name, arguments] of the block that is open

    def read(self, kind: str, data: str) -> list[Segment]:
        event: dict[str, Any] = json.loads(data)
        match event.get("type"):
            case "error":
                raise of_event(self._host, event.get("error"), self._key)
            case "message":  # whole, as one that streams nothing says it
                self._count(event.get("usage"))
                self.reason = _REASONS.get(event["stop_reason"], "stop")
                self.stop = event.get("stop_sequence")
                return [one for block in event["content"] for one in _whole(block)]
            case "message_stop":
                self.is_over = True
            case "message_start":
                self._count(event["message"].get("usage"))
            case "message_delta":
                self._count(event.get("usage"))
                if reason := event["delta"].get("stop_reason"):
                    self.reason = _REASONS.get(reason, "stop")
                    self.stop = event["delta"].get("stop_sequence")
            case "content_block_start":
                return self._open(event["content_block"])
            case "content_block_delta":
                return self._delta(event["delta"])
            case "content_block_stop" if self._call is not None:
                call, self._call = self._call, None
                return [call_or_text(*call)]
        return []

    def _open(self, block: dict[str, Any]) -> list[Segment]:
        if block.get("type") == "tool_use":
            self._call = [str(block["name"]), ""]
        return []

    def _delta(self, delta: dict[str, Any]) -> list[Segment]:
        match delta.get("type"):
            case "text_delta":
                return [Text(str(delta["text"]))]
            case "thinking_delta":
                return [Reasoning(str(delta["thinking"]))]
            case "input_json_delta" if self._call is not None:
                self._call[1] += str(delta["partial_json"])
        return []

    def finish(self) -> list[Segment]:
        """A call that was cut off comes as text."""
        call, self._call = self._call, None
        return [call_or_text(*call)] if call else []

    def _count(self, usage: Any) -> None:
        """Both events may count; what a later one leaves out stays as it was."""
        cached = count_of(usage, "cache_read_input_tokens")
        prompt = cached + sum(
            count_of(usage, name) for name in ("input_tokens", "cache_creation_input_tokens")
        )
        old = self.usage
        self.usage = Usage(
            max(old.prompt_tokens, prompt),
            max(old.cached_tokens, cached),
            max(old.completion_tokens, count_of(usage, "output_tokens")),
        )
