"""/v1/messages, for Anthropic's clients: the same answers as everywhere, in their shapes."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import NinjaAPI

from chat.anthropic_errors import anthropic_error
from chat.anthropic_messages import count_tokens, message_for
from chat.anthropic_schemas import AskedIn, MessagesIn
from chat.api_errors import add_error_handlers
from chat.idempotency import idempotent
from chat.json_bodies import StrictParser
from chat.rights import rights_of

api = NinjaAPI(
    title="Anthropic-compatible API",
    version="v1",
    urls_namespace="anthropic-api",
    docs_url=None,
    openapi_url=None,
    parser=StrictParser(),
)
add_error_handlers(api, anthropic_error)


@api.post("/messages")
@idempotent
async def create_message(request: HttpRequest, data: MessagesIn) -> HttpResponseBase:
    """Answer a chat, whole or as a stream. Raises what becomes Anthropic's errors."""
    message = await message_for(rights_of(request), data)
    return await (message.streamed() if data.stream else message.whole())


@api.post("/messages/count_tokens")
async def count_message_tokens(request: HttpRequest, data: AskedIn) -> dict[str, Any]:
    """How many tokens the model would read."""
    return await count_tokens(rights_of(request), data)
