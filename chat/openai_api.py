"""/v1: models, chat completions and embeddings, as OpenAI's clients expect them.

A completion is the same answer() as the browser's; its events are framed as server-sent events or
folded into one body. Nothing of the conversation is stored: the caller holds it.
"""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import NinjaAPI

from chat.answers import is_draining
from chat.api_errors import add_error_handlers
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.off_loop import off_loop
from chat.openai_completion import own_completion, upstream_completion
from chat.openai_embeddings import EmbeddingsIn, embed
from chat.openai_schemas import ChatCompletionIn
from inference import ModelState

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
    engine().require(data.model, "chat")
    if engine().is_upstream(data.model):
        completion = upstream_completion(request.user, data)
    else:
        tokenizer = await engine().tokenizer(data.model)
        # In a thread: schemas of the caller's are compiled.
        completion = await off_loop(own_completion, request.user, data, tokenizer)
    return await (completion.streamed() if data.stream else completion.whole())


@api.post("/embeddings")
async def create_embeddings(request: HttpRequest, data: EmbeddingsIn) -> HttpResponseBase:
    """A vector for each input. Raises what becomes OpenAI's errors."""
    if is_draining():
        raise ShuttingDown
    return await embed(request.user, data)


def _model(state: ModelState) -> dict[str, Any]:
    return {
        "id": state.spec.name,
        "object": "model",
        "created": 0,
        "owned_by": "vitrine",
        "kind": state.spec.kind,
        "context_window": state.max_context_tokens,
    }
