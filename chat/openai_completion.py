"""One call of /v1/chat/completions: `n` answers to one conversation."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from chat import budgets
from chat import parts as message_parts
from chat.asking import AnswerRequest
from chat.bills import charged
from chat.engine import engine
from chat.events import Delta, Event, Finished, LogEvent, ToolCall
from chat.openai_asking import Asked, asked, for_choice
from chat.openai_bodies import call_body, logprobs_body, message_body
from chat.openai_choices import Choice, Choices, new_id
from chat.openai_schemas import ChatCompletionIn
from chat.openai_stream import Numbered
from chat.orchestrator import answer
from chat.rights import Rights
from inference import TokenLogprob


async def chat_completion(rights: Rights, data: ChatCompletionIn) -> "ChatCompletion":
    """Raises what asked() does."""
    return ChatCompletion(data, await asked(rights, data, new_id("chatcmpl")))


def _most_read(request: AnswerRequest) -> int:
    """Tokens of the prompt at most: it has no more of them than bytes."""
    read = [request.messages, request.tool_schemas, request.upstream_options]
    return len(json.dumps(read, ensure_ascii=False).encode())


def _most_said(request: AnswerRequest, most: int) -> int:
    return request.sampling.max_tokens or most


class ChatCompletion(Choices):
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"
    prompt_field = "messages"

    def __init__(self, data: ChatCompletionIn, asked: Asked) -> None:
        super().__init__(data, asked.request.run_id, data.n or 1)
        self.data = data
        self._asked = asked
        self._num_calls = [0] * self.num_choices

    def events(self) -> AsyncGenerator[Numbered, None]:
        request = self._asked.request
        requests = [
            replace(
                request,
                run_id=f"{self.id}-{index}",
                sampling=for_choice(request.sampling, index),
            )
            for index in range(self.num_choices)
        ]
        rights = self._asked.rights
        most = budgets.most_tokens(rights, self.model)
        answers = [answer(request) for request in requests]
        if engine().is_upstream(self.model):
            # Another server is asked for each alone, and reads the prompt each time.
            more = [min(most, _most_read(one) + _most_said(one, most)) for one in requests[1:]]
            mosts = [most, *more]
            return charged(rights, self.model, answers, num_per_prompt=1, most_tokens=mosts)
        # The prompt is read once, and what it takes is not known yet.
        more = [min(most, _most_said(one, most)) for one in requests[1:]]
        return charged(rights, self.model, answers, most_tokens=[most, *more])

    def whole_choice(self, index: int, events: list[LogEvent]) -> Choice:
        end = events[-1]
        assert isinstance(end, Finished)
        rated = [r for event in events if isinstance(event, Delta) for r in event.logprobs]
        return {
            "index": index,
            "message": message_body(message_parts.fold(events)),
            "logprobs": self._logprobs(rated),
            "finish_reason": end.reason,
        }

    def first_choices(self) -> list[Choice]:
        delta = {"role": "assistant", "content": "", "refusal": None}
        return [self._streamed(index, delta) for index in range(self.num_choices)]

    def streamed_choice(self, index: int, event: Event) -> Choice | None:
        match event:
            case Delta(text=text, part=part, logprobs=rated) if text or rated:
                field = "content" if part == "text" else "reasoning_content"
                return self._streamed(index, {field: text}, rated)
            case ToolCall():
                call = {"index": self._num_calls[index], **call_body(event)}
                self._num_calls[index] += 1
                return self._streamed(index, {"tool_calls": [call]})
            case Finished(reason=reason):
                return self._streamed(index, {}, finish_reason=reason)
        return None

    def _streamed(
        self,
        index: int,
        delta: dict[str, Any],
        rated: tuple[TokenLogprob, ...] = (),
        finish_reason: str | None = None,
    ) -> Choice:
        return {
            "index": index,
            "delta": delta,
            "logprobs": self._logprobs(rated) if rated else None,
            "finish_reason": finish_reason,
        }

    def _logprobs(self, rated: Sequence[TokenLogprob]) -> Any:
        if self._asked.tokenizer is None or not self.data.logprobs:
            return None
        return logprobs_body(self._asked.tokenizer, rated)
