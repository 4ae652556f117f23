"""OpenAI's /chat/completions, as vLLM, SGLang, llama.cpp, Ollama and most others speak it."""

import json
from typing import Any

from inference.call_forms import loaded
from inference.call_ids import with_short_ids
from inference.images import Image, pieces_of
from inference.messages import FinishReason, Usage
from inference.parsing import Reasoning, Segment
from inference.upstreams.call_pieces import CallPieces
from inference.upstreams.messages import ChatMessage, ChatRequest
from inference.upstreams.problems import down, of_event
from inference.upstreams.spec import UpstreamSpec, host_of
from inference.upstreams.thinking import ThinkingSplitter
from inference.upstreams.wire import Halves, count_of

_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "repetition": "length",
    "content_filter": "content_filter",
}
_BROKE_OFF = ("abort", "error")  # as vLLM says where it goes down under an answer


def address(base: str) -> str:
    """Where requests go."""
    return f"{base}/chat/completions"


def headers(spec: UpstreamSpec) -> dict[str, str]:
    return {"Authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}


def body(spec: UpstreamSpec, url: str, request: ChatRequest) -> dict[str, Any]:
    """The body of one request."""
    options = dict(request.options)
    if host_of(url) == "api.openai.com" and "max_tokens" in options:
        # Its newer models refuse the old name, and not every other server knows the new one.
        options["max_completion_tokens"] = options.pop("max_tokens")
    messages = [_message(message) for message in request.messages]
    if request.begun:
        messages.append({"role": "assistant", "content": request.begun})
        if spec.continues == "vllm":
            options |= {"continue_final_message": True, "add_generation_prompt": False}
    tools = {"tools": list(request.tools)} if request.tools else {}
    return {
        "model": spec.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        **tools,
        **options,
    }


def _message(message: ChatMessage) -> ChatMessage:
    """Arguments of calls travel as text; a message of calls alone has no content, one with images has
    it in parts."""
    if message.get("images"):
        parts = [_part(piece) for piece in pieces_of(message)]
        return {name: message[name] for name in message if name != "images"} | {"content": parts}
    message = with_short_ids(message)
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = [
        {**call, "function": {**call["function"], "arguments": _text_of(call["function"])}}
        for call in calls
    ]
    return {**message, "content": message.get("content") or None, "tool_calls": written}


def _part(piece: str | Image) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    detail = {"detail": piece.detail} if piece.detail else {}
    return {"type": "image_url", "image_url": {"url": piece.url, **detail}}


def _text_of(function: dict[str, Any]) -> str:
    arguments = function["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _joined(thinking: Any) -> str:
    if not isinstance(thinking, list):
        return str(thinking)
    return "".join(str(part["text"]) for part in thinking if part.get("type") == "text")


def _thought(text: str) -> list[Segment]:
    return [Reasoning(text)] if text else []


def _error_in(value: Any) -> Any:
    """What a server says that it has failed with, if it does: older vLLM says it bare."""
    if not isinstance(value, dict):
        return None
    return value.get("error") or (value if value.get("object") == "error" else None)


class OpenAIReader:
    """See `wire.Reader`. Calls are handed over whole: their arguments come in pieces."""

    def __init__(self, host: str, key: str = "") -> None:
        self.reason: FinishReason | None = None
        self.usage = Usage()
        self.stop: str | None = None
        self._host, self._key = host, key
        self._splitter = ThinkingSplitter()
        self._halves, self._thought_halves = Halves(), Halves()
        self.is_over = False
        self._calls = CallPieces()

    def read(self, kind: str, data: str) -> list[Segment]:
        if data == "[DONE]":
            self.is_over = True
            self.reason = self.reason or "stop"  # some servers say no other word
            return []
        if kind == "error":
            value = loaded(data)
            raise of_event(self._host, _error_in(value) or value or data, self._key)
        chunk: dict[str, Any] = json.loads(data)
        if error := _error_in(chunk):
            raise of_event(self._host, error, self._key)
        if usage := chunk.get("usage"):
            self.usage = Usage(
                count_of(usage, "prompt_tokens"),
                count_of(usage, "prompt_tokens_details", "cached_tokens"),
                count_of(usage, "completion_tokens"),
            )
        segments: list[Segment] = []
        for choice in chunk.get("choices") or ():
            # One that streams nothing says its message in the whole.
            segments += self._read_delta(choice.get("delta") or choice.get("message") or {})
            if reason := choice.get("finish_reason"):
                if reason in _BROKE_OFF:
                    raise down(self._host, f"broke off ({reason})")
                self.reason = _REASONS.get(reason, "stop")
        return segments

    def _read_delta(self, delta: dict[str, Any]) -> list[Segment]:
        segments: list[Segment] = []
        # Two names for the same: DeepSeek's, and OpenRouter's and vLLM's newer one.
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            segments += _thought(self._thought_halves.feed(str(thought)))
        if text := delta.get("content") or delta.get("refusal"):
            segments += self._read_content(text)
        for piece in delta.get("tool_calls") or ():
            self._calls.add(piece)
        return segments

    def _read_content(self, content: Any) -> list[Segment]:
        """A text or, as Mistral's thinking models write, a list of parts."""
        if not isinstance(content, list):
            return self._splitter.feed(self._halves.feed(str(content)))
        segments: list[Segment] = []
        for part in content:
            match part.get("type"):
                case "text":
                    segments += self._splitter.feed(self._halves.feed(str(part["text"])))
                case "thinking":
                    thought = _joined(part["thinking"])
                    segments += _thought(self._thought_halves.feed(thought))
        return segments

    def finish(self) -> list[Segment]:
        thought = _thought(self._thought_halves.finish())
        text = self._splitter.feed(self._halves.finish())
        return [*thought, *text, *self._splitter.finish(), *self._calls.segments()]
