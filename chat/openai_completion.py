"""One call of /v1/chat/completions: `n` answers to one prompt, whole or as a stream of chunks."""

import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from time import time
from typing import Any

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from chat import parts as message_parts
from chat.api_errors import api_error, error_body, status_of
from chat.asking import AnswerRequest, Sampling
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
from chat.merging import merged
from chat.openai_bodies import call_body, chat_message, logprobs_body, message_body, usage_body
from chat.openai_grammar import grammar_of
from chat.openai_schemas import ChatCompletionIn
from chat.orchestrator import answer
from chat.wire import dumps
from inference import ChatTokenizer, InvalidParameter, TokenLogprob

Numbered = tuple[int, Event]
"""An event and the index of the choice that it belongs to."""


def own_completion(user: Any, data: ChatCompletionIn, tokenizer: ChatTokenizer) -> "Completion":
    """Of a model of our own engine: what the answer has to follow is compiled to a grammar."""
    return Completion(user, data, tokenizer, grammar=grammar_of(data, tokenizer))


def upstream_completion(user: Any, data: ChatCompletionIn) -> "Completion":
    """Of another server's model, which is told what its answer has to follow.

    Raises InvalidParameter for what cannot be handed on.
    """
    if data.logprobs:
        raise InvalidParameter("logprobs", "not told by models that run on other servers")
    return Completion(user, data, None, upstream_options=data.format_options())


class Completion:
    """The requests as answer() wants them, one for each choice, and their events as OpenAI frames."""

    def __init__(
        self,
        user: Any,
        data: ChatCompletionIn,
        tokenizer: ChatTokenizer | None,
        *,
        grammar: str = "",
        upstream_options: dict[str, Any] | None = None,
    ) -> None:
        self.data = data
        self.tokenizer = tokenizer
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time())
        first = AnswerRequest(
            run_id=self.id,
            model=data.model,
            messages=[chat_message(message) for message in data.messages],
            user=str(user.pk),
            weight=user.tier.weight,
            sampling=_sampling(data, grammar),
            tool_schemas=data.tool_schemas(),
            upstream_options=upstream_options or {},
            priority="api",
            may_drop_turns=False,  # the caller holds the conversation, and has to know
        )
        self.requests = [_choice(first, index) for index in range(data.n or 1)]
        self._num_calls = [0] * len(self.requests)
        self._usages: list[RunUsage] = []

    # --- whole --------------------------------------------------------------------------------

    async def whole(self) -> HttpResponse:
        """All events folded into one body."""
        of_choices: list[list[LogEvent]] = [[] for _ in self.requests]
        async with aclosing(self._events()) as events:
            async for index, event in events:
                if isinstance(event, Failed | Refused):
                    return _error_response(event)
                if isinstance(event, LogEvent):
                    of_choices[index].append(event)
        choices = [self._whole_choice(index, events) for index, events in enumerate(of_choices)]
        body = self._body("chat.completion", choices) | {"usage": usage_body(self._usages)}
        return JsonResponse(body)

    def _whole_choice(self, index: int, events: list[LogEvent]) -> dict[str, Any]:
        end = events[-1]
        assert isinstance(end, Finished)
        self._usages.append(end.usage)
        rated = [r for event in events if isinstance(event, Delta) for r in event.logprobs]
        return {
            "index": index,
            "message": message_body(message_parts.fold(events)),
            "logprobs": self._logprobs(rated),
            "finish_reason": end.reason,
        }

    # --- streamed -----------------------------------------------------------------------------

    async def streamed(self) -> HttpResponseBase:
        """The events as a stream; what fails before the engine computes is still an HTTP status.

        Clients try again after a 503; an error inside a 200 ends their program.
        """
        events = self._events()
        first = [await anext(events)]
        while _is_waiting(first[-1][1]):
            first.append(await anext(events))
        if isinstance(end := first[-1][1], Failed | Refused):
            await events.aclose()
            return _error_response(end)
        return StreamingHttpResponse(
            self._chunks(first, events),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _chunks(
        self, first: list[Numbered], rest: AsyncGenerator[Numbered, None]
    ) -> AsyncGenerator[str, None]:
        """One chunk per event, `[DONE]` last; an error inside the stream is an event too."""
        for index in range(len(self.requests)):
            yield self._chunk(index, {"role": "assistant", "content": "", "refusal": None})
        async with aclosing(rest):
            async for index, event in _chained(first, rest):
                if isinstance(event, Failed | Refused):
                    body = error_body(status_of(event.code), event.code, event.message)
                    yield f"data: {dumps(body)}\n\n"
                    break  # the other choices end with it: clients stop reading at an error
                if (chunk := self._chunk_of(index, event)) is not None:
                    yield chunk
            else:
                if self.data.stream_options and self.data.stream_options.include_usage:
                    yield self._frame([], usage=usage_body(self._usages))
        yield "data: [DONE]\n\n"

    def _chunk_of(self, index: int, event: Event) -> str | None:
        match event:
            case Delta(text=text, part=part, logprobs=rated) if text or rated:
                field = "content" if part == "text" else "reasoning_content"
                return self._chunk(index, {field: text}, rated)
            case ToolCall():
                call = {"index": self._num_calls[index], **call_body(event)}
                self._num_calls[index] += 1
                return self._chunk(index, {"tool_calls": [call]})
            case Finished(reason=reason, usage=usage):
                self._usages.append(usage)
                return self._chunk(index, {}, finish_reason=reason)
        return None

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        rated: tuple[TokenLogprob, ...] = (),
        finish_reason: str | None = None,
    ) -> str:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": self._logprobs(rated) if rated else None,
            "finish_reason": finish_reason,
        }
        return self._frame([choice])

    def _frame(self, choices: list[dict[str, Any]], **extra: Any) -> str:
        return f"data: {dumps(self._body('chat.completion.chunk', choices) | extra)}\n\n"

    # --- both ---------------------------------------------------------------------------------

    def _events(self) -> AsyncGenerator[Numbered, None]:
        return merged([answer(request) for request in self.requests])

    def _logprobs(self, rated: list[TokenLogprob] | tuple[TokenLogprob, ...]) -> Any:
        if self.tokenizer is None or not self.data.logprobs:
            return None
        return logprobs_body(self.tokenizer, rated)

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.data.model,
            "choices": choices,
        }


def _sampling(data: ChatCompletionIn, grammar: str) -> Sampling:
    return Sampling(
        max_tokens=data.max_completion_tokens or data.max_tokens,
        temperature=data.temperature,
        top_p=data.top_p,
        top_k=data.top_k,
        min_p=data.min_p,
        seed=None if data.seed is None else data.seed % 2**63,
        stop=tuple(data.stop_strings),
        stop_token_ids=tuple(data.stop_token_ids or ()),
        ignore_eos=bool(data.ignore_eos),
        min_tokens=data.min_tokens or 0,
        presence_penalty=data.presence_penalty or 0.0,
        frequency_penalty=data.frequency_penalty or 0.0,
        repetition_penalty=data.repetition_penalty,
        logit_bias=data.biases,
        num_logprobs=(data.top_logprobs or 0) if data.logprobs else None,
        grammar=grammar,
    )


def _choice(first: AnswerRequest, index: int) -> AnswerRequest:
    """The request of choice `index`: its own name, and of a given seed one of its own."""
    if index == 0:
        return first
    seed = first.sampling.seed
    if seed is not None:
        digest = hashlib.blake2b(f"{seed} {index}".encode(), digest_size=8).digest()
        seed = int.from_bytes(digest) % 2**63
    return replace(
        first, run_id=f"{first.run_id}-{index}", sampling=replace(first.sampling, seed=seed)
    )


def _is_waiting(event: Event) -> bool:
    """Whether the engine has not begun to compute: the model loads, the request is queued, or it is
    another server's turn to speak."""
    if isinstance(event, Phase):
        return event.phase in ("loading", "queued", "asking")
    return isinstance(event, Started)


async def _chained(
    first: list[Numbered], rest: AsyncGenerator[Numbered, None]
) -> AsyncGenerator[Numbered, None]:
    for event in first:
        yield event
    async for event in rest:
        yield event


def _error_response(end: Failed | Refused) -> HttpResponse:
    retry_after_s = end.retry_after_s if isinstance(end, Failed) else None
    param = end.param if isinstance(end, Failed) else None
    if end.code == "context_length_exceeded":
        param = "messages"
    return api_error(
        status_of(end.code), end.code, end.message, param=param, retry_after_s=retry_after_s
    )
