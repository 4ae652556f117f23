"""`n` answers to one request, as completions of both kinds frame them: one body, or chunks."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import time
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from chat.api_errors import error_body, status_of
from chat.events import Event, Failed, LogEvent, Refused
from chat.openai_schemas import SamplingIn
from chat.openai_stream import Begun, Numbered, error_response, opened
from chat.openai_usage import Tally, completion_usage
from chat.streaming import server_sent_events
from chat.wire import dumps

Choice = dict[str, Any]


class Choices(ABC):
    """The answers are numbered from 0, `n` of them for each prompt."""

    kind: str
    chunk_kind: str
    prompt_field: str

    def __init__(self, data: SamplingIn, id_: str, num_choices: int) -> None:
        self.model = data.model
        self.num_choices = num_choices
        self.num_per_prompt = data.n or 1
        self.wants_usage = data.wants_usage
        self.id = id_
        self.created = int(time())
        self.tally = Tally()

    @abstractmethod
    def events(self) -> AsyncGenerator[Numbered, None]:
        """Those of all choices, as they come."""

    @abstractmethod
    def whole_choice(self, index: int, events: list[LogEvent]) -> Choice: ...

    @abstractmethod
    def first_choices(self) -> list[Choice]:
        """What a stream says of its choices before they have begun."""

    @abstractmethod
    def streamed_choice(self, index: int, event: Event) -> Choice | None:
        """What an event adds to its choice, if anything."""

    async def whole(self) -> HttpResponse:
        """All events folded into one body."""
        of_choices: list[list[LogEvent]] = [[] for _ in range(self.num_choices)]
        async with aclosing(self._heard()) as events:
            async for index, event in events:
                if isinstance(event, Failed | Refused):
                    return error_response(event, prompt=self.prompt_field)
                if isinstance(event, LogEvent):
                    of_choices[index].append(event)
        choices = [self.whole_choice(index, events) for index, events in enumerate(of_choices)]
        return JsonResponse(self._body(self.kind, choices) | self._end())

    async def streamed(self) -> HttpResponseBase:
        begun, error = await opened(self._heard())
        if error is not None:
            return error_response(error, prompt=self.prompt_field)
        return server_sent_events(self._chunks(begun))

    async def _chunks(self, begun: Begun) -> AsyncGenerator[str, None]:
        """One chunk per event, `[DONE]` last; an error inside the stream is an event too."""
        async with aclosing(begun) as events:
            begin = "".join(self._frame([choice]) for choice in self.first_choices())
            if not begun.has_news:
                yield begin
                begin = ""
            async for index, event in events:
                if isinstance(event, Failed | Refused):
                    body = error_body(status_of(event.code), event.code, event.message)
                    yield f"{begin}data: {dumps(body)}\n\n"
                    break  # the other choices end with it: clients stop reading at an error
                if (news := self.streamed_choice(index, event)) is not None:
                    yield begin + self._frame([news])
                    begin = ""
            else:
                if self.wants_usage:
                    yield begin + self._frame([], **self._end())
        yield "data: [DONE]\n\n"

    async def _heard(self) -> AsyncGenerator[Numbered, None]:
        async with aclosing(self.events()) as events:
            async for index, event in events:
                self.tally.hear(event, prompt=index // self.num_per_prompt)
                yield index, event

    def _end(self) -> dict[str, Any]:
        return {"usage": completion_usage(self.tally), "timings": self.tally.timings()}

    def _frame(self, choices: list[Choice], **extra: Any) -> str:
        return f"data: {dumps(self._body(self.chunk_kind, choices) | extra)}\n\n"

    def _body(self, kind: str, choices: list[Choice]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(12)}"
