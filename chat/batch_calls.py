"""One line of a batch: asked through the same code as its endpoint, with the rights of its key."""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.http import HttpResponse
from ninja.errors import ValidationError
from pydantic import BaseModel
from pydantic import ValidationError as Problems
from structlog.contextvars import bound_contextvars

from chat.api_errors import ApiError, api_error, response_to
from chat.batch_lines import Line
from chat.draining import is_draining
from chat.errors import ChatError, ShuttingDown
from chat.off_loop import off_loop
from chat.openai_completion import chat_completion
from chat.openai_embeddings import EmbeddingsIn, embed
from chat.openai_responses import response_to as answer_of_items
from chat.openai_schemas import ChatCompletionIn
from chat.openai_text import TextCompletionIn, text_completion
from chat.persisting import AWAY
from chat.responses_schemas import ResponseIn
from chat.rights import Rights
from chat.spans import new_trace_id
from inference import EngineError

logger = logging.getLogger(__name__)

MAX_TRIES = 3  # of what the server fails at
MAX_TRIES_AWAY = 40  # half an hour, with the waits between
_LONGEST_WAIT_S = 60.0  # a budget may be raised, long before it would be there anew
_PASSING = frozenset({"signed_out", "shutting_down", "engine_closed", "overloaded"})
"""Errors that are none of the line's: it is asked again, however often."""
_AWAY = frozenset({"upstream_unavailable", "moderation_unavailable"})
"""Another server is, that restarts, say. Or falls over this very line, so there is an end to it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`scope` is what a key needs for it, beside the one for batches."""

    body: type[BaseModel]
    ask: Callable[[Rights, Any], Awaitable[HttpResponse]]
    scope: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, and the line of a result that tells it. Tokens are as OpenAI's `usage` has them."""

    status: int
    code: str
    retry_after_s: float
    text: str
    usage: dict[str, int]

    @property
    def is_error(self) -> bool:
        return self.status != 200

    def wait_s(self, num_tries: int) -> float | None:
        """When the line is to be asked again, which has ended so for so many times; None: this is its
        answer."""
        if self.status == 429 or self.code in _PASSING:
            return min(max(1.0, self.retry_after_s), _LONGEST_WAIT_S)
        most_tries = MAX_TRIES_AWAY if self.code in _AWAY else MAX_TRIES
        if self.status >= 500 and num_tries < most_tries:
            return min(2.0**num_tries, _LONGEST_WAIT_S)
        return None


async def _chat(rights: Rights, data: ChatCompletionIn) -> HttpResponse:
    return await (await chat_completion(rights, data)).whole()


async def _text(rights: Rights, data: TextCompletionIn) -> HttpResponse:
    return await (await text_completion(rights, data)).whole()


async def _items(rights: Rights, data: ResponseIn) -> HttpResponse:
    return await (await answer_of_items(rights, data)).whole()


ENDPOINTS = {
    "/v1/chat/completions": Endpoint(ChatCompletionIn, _chat, "chat"),
    "/v1/completions": Endpoint(TextCompletionIn, _text, "chat"),
    "/v1/responses": Endpoint(ResponseIn, _items, "chat"),
    "/v1/embeddings": Endpoint(EmbeddingsIn, embed, "embeddings"),
}


async def ask(rights: Rights, endpoint: str, line: Line) -> Answer:
    """In the scope of the user. What its endpoint raises is an answer, too.

    Raises OperationalError or InterfaceError: without a database there is no answer.
    """
    request_id, began_s = new_trace_id(), monotonic()
    with bound_contextvars(request_id=request_id):
        try:
            response = await _response(rights, ENDPOINTS[endpoint], line.body)
        except Problems as problems:
            found: Any = problems.errors(include_url=False, include_context=False)
            response = response_to(ValidationError(found))
        except (ApiError, ChatError, EngineError) as error:
            response = response_to(error)
        except AWAY:
            raise  # the database is away, which says nothing of the line
        except Exception:
            logger.exception("line %d of a batch failed", line.number)
            response = api_error(500, "server_error", "The server failed at this request.")
        facts = {"status": response.status_code, "seconds": round(monotonic() - began_s, 3)}
        logger.info("line %d of a batch is answered", line.number, extra=facts)
    # In a thread: vectors are megabytes of numbers.
    return await off_loop(_answer, line, request_id, response)


async def _response(rights: Rights, endpoint: Endpoint, body: dict[str, Any]) -> HttpResponse:
    data = endpoint.body.model_validate(body)
    if getattr(data, "stream", False):
        message = "stream: what a batch asks is answered whole."
        raise ApiError(400, "invalid_value", message, "stream")
    if is_draining():
        raise ShuttingDown
    return await endpoint.ask(rights, data)


def _answer(line: Line, request_id: str, response: HttpResponse) -> Answer:
    body = response.content.decode()
    value = json.loads(body)
    told = {"status_code": response.status_code, "request_id": request_id}
    # The body as it is: to write it anew would cost as much as the whole line.
    answered = f'{json.dumps(told)[:-1]}, "body": {body}}}'
    return Answer(
        status=response.status_code,
        code=(value.get("error") or {}).get("code") or "",
        retry_after_s=float(response.headers.get("Retry-After", 0)),
        text=_result(line, request_id, answered, "null"),
        usage=_usage(value.get("usage") or {}),
    )


def unanswered(line: Line, code: str, message: str) -> str:
    """The line of a result that tells why a request was not asked."""
    error = json.dumps({"code": code, "message": message})
    return _result(line, new_trace_id(), "null", error)


def _result(line: Line, request_id: str, response: str, error: str) -> str:
    head = json.dumps({"id": f"batch_req_{request_id}", "custom_id": line.custom_id})
    return f'{head[:-1]}, "response": {response}, "error": {error}}}'


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    """By the names of a batch's columns."""
    read = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    written = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return {
        "prompt_tokens": usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
        "cached_tokens": read.get("cached_tokens") or 0,
        "completion_tokens": usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        "reasoning_tokens": written.get("reasoning_tokens") or 0,
    }
