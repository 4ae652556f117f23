"""One call of /v1/messages: an answer in Anthropic's shape, whole or as a stream."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from chat.anthropic_errors import anthropic_error
from chat.anthropic_prompt import as_chat, asked_as_chat
from chat.anthropic_schemas import AskedIn, MessagesIn
from chat.anthropic_writer import MessageWriter
from chat.bills import charged
from chat.events import Failed, Refused
from chat.openai_asking import Asked
from chat.openai_stream import Begun, Numbered, error_response, opened
from chat.openai_tokenize import count_chat
from chat.orchestrator import answer
from chat.rights import Rights
from chat.streaming import server_sent_events


async def message_for(rights: Rights, data: MessagesIn) -> "Message":
    """Raises what asked() does."""
    return Message(await asked_as_chat(rights, data, f"msg_{secrets.token_hex(12)}"))


class Message:
    def __init__(self, asked: Asked) -> None:
        self.rights = asked.rights
        self.request = asked.request
        self.writer = MessageWriter(asked.request.model, asked.request.run_id)

    async def whole(self) -> HttpResponse:
        async with aclosing(self._events()) as events:
            async for _, event in events:
                if isinstance(event, Failed | Refused):
                    return error_response(event, respond=anthropic_error)
                for _frame in self.writer.hear(event):
                    pass  # the body is built up by the frames
        return JsonResponse(self.writer.body)

    async def streamed(self) -> HttpResponseBase:
        begun, error = await opened(self._events())
        if error is not None:
            return error_response(error, respond=anthropic_error)
        return server_sent_events(self._frames(begun))

    async def _frames(self, begun: Begun) -> AsyncGenerator[str, None]:
        async with aclosing(begun) as events:
            for frame in self.writer.begin(begun.last):
                yield frame
            async for _, event in events:
                for frame in self.writer.hear(event):
                    yield frame

    def _events(self) -> AsyncGenerator[Numbered, None]:
        return charged(self.rights, self.request.model, [answer(self.request)])


async def count_tokens(rights: Rights, data: AskedIn) -> dict[str, Any]:
    """Raises EngineError."""
    chat = as_chat(data)
    return {
        "input_tokens": await count_chat(rights, chat.model, chat.messages, chat.tool_schemas())
    }
