"""/v1: models and chat completions, as OpenAI's clients expect them.

The same answer() as the browser's; its events are framed as server-sent events or folded into one
body. Nothing of the conversation is stored: the caller holds it.
"""

import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import time
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI

from chat import parts as message_parts
from chat.answers import is_draining
from chat.api_errors import add_error_handlers, api_error, error_body, status_of
from chat.asking import AnswerRequest, Sampling
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import (
    Delta,
    Event,
    Failed,
    Finished,
    LogEvent,
    Phase,
    Refused,
    RunUsage,
    Started,
    ToolCall,
)
from chat.openai_schemas import ChatCompletionIn, ChatMessageIn
from chat.orchestrator import answer
from chat.wire import dumps
from inference import ChatMessage, ModelState

api = NinjaAPI(
    title="OpenAI-compatible API",
    version="v1",
    urls_namespace="openai-api",
    docs_url=None,
    openapi_url="/openapi.json",
)
add_error_handlers(api)


@api.get("/models")
async def list_models(request: HttpRequest) -> dict[str, Any]:
    return {"object": "list", "data": [_model(state) for state in engine().models()]}


@api.get("/models/{path:model}")
async def show_model(request: HttpRequest, model: str) -> dict[str, Any]:
    return _model(engine().state(model))


@api.post("/chat/completions")
async def create_chat_completion(request: HttpRequest, data: ChatCompletionIn) -> HttpResponseBase:
    """Answer a chat, whole or as a stream. Raises what becomes OpenAI's errors."""
    if is_draining():
        raise ShuttingDown
    engine().spec(data.model)
    completion = _Completion(request, data)
    return await (completion.streamed() if data.stream else completion.whole())


class _Completion:
    """One call: the request as answer() wants it, and its events as OpenAI frames them."""

    def __init__(self, request: HttpRequest, data: ChatCompletionIn) -> None:
        self.data = data
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time())
        self.request = AnswerRequest(
            run_id=self.id,
            model=data.model,
            messages=[_chat_message(message) for message in data.messages],
            user=str(request.user.pk),
            sampling=Sampling(
                max_tokens=data.max_completion_tokens or data.max_tokens,
                temperature=data.temperature,
                top_p=data.top_p,
                top_k=data.top_k,
                min_p=data.min_p,
                seed=None if data.seed is None else data.seed % 2**63,
                stop=tuple(data.stop_strings),
            ),
            tool_schemas=data.tool_schemas(),
            priority="api",
            may_drop_turns=False,  # the caller holds the conversation, and has to know
        )

    async def whole(self) -> HttpResponse:
        """All events folded into one body."""
        events: list[LogEvent] = []
        async with aclosing(answer(self.request)) as stream:
            async for event in stream:
                if isinstance(event, LogEvent):
                    events.append(event)
        end = events[-1]
        if isinstance(end, Failed | Refused):
            return _error_response(end)
        assert isinstance(end, Finished)
        message = _message(message_parts.fold(events))
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.reason}
        body = self._body("chat.completion", [choice]) | {"usage": _usage(end.usage)}
        return JsonResponse(body)

    async def streamed(self) -> HttpResponseBase:
        """The events as a stream; what fails before the engine computes is still an HTTP status.

        Clients try again after a 503; an error inside a 200 ends their program.
        """
        events = answer(self.request)
        first: list[Event] = [await anext(events)]
        while _is_waiting(first[-1]):
            first.append(await anext(events))
        if isinstance(first[-1], Failed | Refused):
            await events.aclose()
            return _error_response(first[-1])
        return StreamingHttpResponse(
            self._chunks(first, events),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _chunks(
        self, first: list[Event], rest: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[str, None]:
        """One chunk per event, `[DONE]` last; an error inside the stream is an event too."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})
        num_calls = 0
        async with aclosing(rest):
            async for event in _chained(first, rest):
                match event:
                    case Delta(text=text, part="text") if text:
                        yield self._chunk({"content": text})
                    case Delta(text=text, part="reasoning") if text:
                        yield self._chunk({"reasoning_content": text})
                    case ToolCall():
                        yield self._chunk({"tool_calls": [{"index": num_calls, **_call(event)}]})
                        num_calls += 1
                    case Finished(reason=reason, usage=usage):
                        yield self._chunk({}, finish_reason=reason)
                        if self.data.stream_options and self.data.stream_options.include_usage:
                            yield self._frame([], usage=_usage(usage))
                    case Failed(code=code, message=message) | Refused(code=code, message=message):
                        body = error_body(status_of(code), code, message)
                        yield f"data: {dumps(body)}\n\n"
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._frame([choice])

    def _frame(self, choices: list[dict[str, Any]], **extra: Any) -> str:
        return f"data: {dumps(self._body('chat.completion.chunk', choices) | extra)}\n\n"

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.data.model,
            "choices": choices,
        }


def _is_waiting(event: Event) -> bool:
    """Whether the engine has not begun to compute: the model loads, or the request is queued."""
    if isinstance(event, Phase):
        return event.phase in ("loading", "queued")
    return isinstance(event, Started)


async def _chained(
    first: list[Event], rest: AsyncGenerator[Event, None]
) -> AsyncGenerator[Event, None]:
    for event in first:
        yield event
    async for event in rest:
        yield event


def _error_response(end: Failed | Refused) -> HttpResponse:
    retry_after_s = end.retry_after_s if isinstance(end, Failed) else None
    param = "messages" if end.code == "context_length_exceeded" else None
    return api_error(
        status_of(end.code), end.code, end.message, param=param, retry_after_s=retry_after_s
    )


def _chat_message(message: ChatMessageIn) -> ChatMessage:
    """A message as chat templates want it: content as text, arguments as an object."""
    role = "system" if message.role == "developer" else message.role
    result: ChatMessage = {"role": role, "content": message.text}
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


def _message(parts: message_parts.Parts) -> dict[str, Any]:
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
            _call(ToolCall(part["id"], part["name"], part["arguments"])) for part in calls
        ]
    return message


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(usage: RunUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _model(state: ModelState) -> dict[str, Any]:
    return {
        "id": state.spec.name,
        "object": "model",
        "created": 0,
        "owned_by": "vitrine",
        "context_window": state.max_context_tokens,
    }
