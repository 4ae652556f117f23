"""Vitrine's own REST API under /api: conversations, runs and models."""

from typing import Any

from django.http import HttpRequest
from ninja import Schema

from chat import (
    collections_api,
    dictation_api,
    document_search_api,
    document_view_api,
    documents_api,
    feedback_api,
    glass,
    library_api,
    memories_api,
    personal_api,
    runs_api,
    schedules_api,
    search_api,
    share_api,
    stopped_api,
    tools_api,
    tree_api,
    usage_api,
    values,
)
from chat.api_errors import add_error_handlers
from chat.described_api import DescribedApi
from chat.engine import engine
from chat.json_bodies import StrictParser
from chat.rights import rights_of
from chat.transfer.api import router as transfer_router

api = DescribedApi(
    title="Vitrine",
    version="1",
    urls_namespace="vitrine-api",
    docs_url=None,  # ninja's page loads its scripts from elsewhere, which our policy forbids
    openapi_url="/openapi.json",
    parser=StrictParser(),
)
add_error_handlers(api)
api.add_router("/shares", share_api.router)
api.add_router("/documents", document_view_api.router)
api.add_router("", glass.router)
api.add_router("", transfer_router)
api.add_router("", library_api.router)
api.add_router("/search", search_api.router)
api.add_router("", personal_api.router)
api.add_router("", memories_api.router)
api.add_router("", schedules_api.router)
api.add_router("/collections", collections_api.router)
api.add_router("/documents", document_search_api.router)
api.add_router("", documents_api.router)
api.add_router("", tree_api.router)
api.add_router("", dictation_api.router)
api.add_router("", feedback_api.router)
api.add_router("", usage_api.router)
api.add_router("", tools_api.router)
api.add_router("/moderation", stopped_api.router)
api.add_router("", runs_api.router)


class LoadModel(Schema):
    model: str


@api.get("/models")
async def list_models(request: HttpRequest) -> dict[str, Any]:
    """Every model of the catalogue and how it stands."""
    return {"models": [values.model_value(state) for state in rights_of(request).models()]}


@api.post("/models/load")
async def load_model(request: HttpRequest, data: LoadModel) -> dict[str, Any]:
    """Start loading a model; `GET /api/models` and the socket tell how it goes."""
    rights_of(request).check_models([data.model])
    engine().load(data.model)
    return {"model": values.model_value(engine().state(data.model))}
