"""/v1: models, answers, texts, embeddings, sound, pictures, files, batches and vector stores, as clients
of OpenAI's expect them.

An answer is the same answer() as the browser's; its events are framed as server-sent events or
folded into one body. Nothing of the conversation is stored but what /v1/responses is asked to keep, and
what batches read and write.
"""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from pydantic import Field

from chat import (
    openai_audio,
    openai_batches,
    openai_files,
    openai_images,
    openai_responses,
    openai_vector_stores,
)
from chat.api_errors import ApiError, add_error_handlers
from chat.described_api import DescribedApi
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.idempotency import idempotent
from chat.json_bodies import StrictParser
from chat.openai_completion import chat_completion
from chat.openai_embeddings import EmbeddingsIn, embed
from chat.openai_missing import add_missing, add_missing_first
from chat.openai_moderations import ModerationIn, moderate
from chat.openai_schemas import ChatCompletionIn
from chat.openai_text import TextCompletionIn, text_completion
from chat.openai_tokenize import TokenizeIn, tokenize
from chat.responses_schemas import ResponseIn
from chat.rights import rights_of
from inference import ModelState

api = DescribedApi(
    title="OpenAI-compatible API",
    version="v1",
    urls_namespace="openai-api",
    docs_url=None,
    openapi_url="/openapi.json",
    parser=StrictParser(),
)
add_error_handlers(api)
add_missing_first(api)


@api.get("/models")
async def list_models(request: HttpRequest) -> dict[str, Any]:
    return {"object": "list", "data": [_model(state) for state in rights_of(request).models()]}


@api.get("/models/{path:model}")
async def show_model(request: HttpRequest, model: str) -> dict[str, Any]:
    rights_of(request).check_models([model])
    return _model(engine().state(model))


@api.post("/chat/completions")
@idempotent
async def create_chat_completion(request: HttpRequest, data: ChatCompletionIn) -> HttpResponseBase:
    """Answer a chat, whole or as a stream. Raises what becomes OpenAI's errors."""
    completion = await chat_completion(rights_of(request), data)
    return await (completion.streamed() if data.stream else completion.whole())


@api.post("/completions")
@idempotent
async def create_completion(request: HttpRequest, data: TextCompletionIn) -> HttpResponseBase:
    """Go on with prompts as they are, without a chat template."""
    completion = await text_completion(rights_of(request), data)
    return await (completion.streamed() if data.stream else completion.whole())


@api.post("/responses")
@idempotent
async def create_response(request: HttpRequest, data: ResponseIn) -> HttpResponseBase:
    """Answer items with items, and keep both unless `store` is false."""
    response = await openai_responses.response_to(rights_of(request), data)
    return await (response.streamed() if data.stream else response.whole())


@api.post("/responses/input_tokens")
async def count_input_tokens(request: HttpRequest, data: ResponseIn) -> dict[str, Any]:
    """How many tokens the model would read of a response's input."""
    return await openai_responses.count_input_tokens(rights_of(request), data)


@api.get("/responses/{response_id}")
async def show_response(
    request: HttpRequest, response_id: str, stream: bool = False
) -> dict[str, Any]:
    if stream:
        message = "stream: a response is kept when it has ended, and is told whole."
        raise ApiError(400, "invalid_value", message, "stream")
    return await openai_responses.stored(request.user, response_id)


@api.delete("/responses/{response_id}")
async def delete_response(request: HttpRequest, response_id: str) -> dict[str, Any]:
    return await openai_responses.delete(request.user, response_id)


@api.post("/responses/{response_id}/cancel")
async def cancel_response(request: HttpRequest, response_id: str) -> dict[str, Any]:
    """None is written in the background, so none that is kept can be cancelled."""
    await openai_responses.stored(request.user, response_id)
    message = "Only responses in the background can be cancelled; leave the stream of another."
    raise ApiError(400, "invalid_value", message)


@api.get("/responses/{response_id}/input_items")
async def list_input_items(
    request: HttpRequest,
    response_id: str,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: str = "",
) -> dict[str, Any]:
    """What was asked with a response, without what it went on from."""
    return await openai_responses.input_items(
        request.user, response_id, limit=limit, is_newest_first=order == "desc", after=after
    )


@api.post("/embeddings")
@idempotent
async def create_embeddings(request: HttpRequest, data: EmbeddingsIn) -> HttpResponseBase:
    """A vector for each input. Raises what becomes OpenAI's errors."""
    if is_draining():
        raise ShuttingDown
    return await embed(rights_of(request), data)


@api.post("/moderations")
async def create_moderation(request: HttpRequest, data: ModerationIn) -> dict[str, Any]:
    """What each input holds of what is moderated, and how likely that is."""
    if is_draining():
        raise ShuttingDown
    return await moderate(rights_of(request), data)


@api.post("/tokenize")
async def create_tokens(request: HttpRequest, data: TokenizeIn) -> dict[str, Any]:
    """The token ids that a model reads of a text or of a chat."""
    return await tokenize(rights_of(request), data)


api.add_router("/audio", openai_audio.router)
api.add_router("/images", openai_images.router)
api.add_router("/files", openai_files.router)
api.add_router("/batches", openai_batches.router)
api.add_router("/vector_stores", openai_vector_stores.router)
add_missing(api)


def _model(state: ModelState) -> dict[str, Any]:
    return {
        "id": state.spec.name,
        "object": "model",
        "created": 0,
        "owned_by": "vitrine",
        "kind": state.spec.kind,
        "parent": state.spec.base or None,
        "context_window": state.max_context_tokens,
        "images": state.sees_images,
    }
