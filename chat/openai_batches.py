"""/v1/batches: make, look up, list and cancel. Source: OpenAI's API description."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router
from pydantic import Field

from chat import batch_rows, files
from chat.api_errors import ApiError
from chat.batch_calls import ENDPOINTS
from chat.batch_files import public_id
from chat.db import in_db
from chat.idempotency import idempotent
from chat.models import Batch
from chat.openai_files import list_of
from chat.openai_schemas import Metadata, Strict
from chat.rights import rights_of
from chat.storable import storable_value

router = Router()

_TIMES = (
    *("in_progress_at", "expires_at", "finalizing_at", "completed_at"),
    *("failed_at", "expired_at", "cancelling_at", "cancelled_at"),
)


class ExpiresAfter(Strict):
    anchor: Literal["created_at"]
    seconds: int = Field(ge=3600, le=2_592_000)


class BatchIn(Strict):
    """The whole body."""

    input_file_id: str = Field(max_length=64)
    endpoint: Literal["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"]
    completion_window: Literal["24h"]
    metadata: Metadata | None = None
    output_expires_after: ExpiresAfter | None = None


@router.post("")
@idempotent
async def create_batch(request: HttpRequest, data: BatchIn) -> HttpResponse:
    """Have the requests of a file answered within a day, behind everybody who waits."""
    rights = rights_of(request)
    rights.require_files()
    scope = ENDPOINTS[data.endpoint].scope
    if rights.api_key is not None and scope not in rights.api_key.scopes:
        message = f"endpoint: this API key does not open {data.endpoint}."
        raise ApiError(403, "insufficient_scope", message, "endpoint")
    expiry = data.output_expires_after
    row = await in_db(batch_rows.create)(
        rights,
        data.input_file_id,
        endpoint=data.endpoint,
        metadata=storable_value(data.metadata),
        output_expires_s=expiry.seconds if expiry else None,
    )
    return JsonResponse(value_of(row))


@router.get("")
async def list_batches(
    request: HttpRequest, limit: Annotated[int, Field(ge=1, le=100)] = 20, after: str = ""
) -> dict[str, Any]:
    rows = await in_db(batch_rows.page)(request.user, limit=limit, after=after)
    return list_of([value_of(row) for row in rows], limit)


@router.get("/{batch_id}")
async def show_batch(request: HttpRequest, batch_id: str) -> dict[str, Any]:
    return value_of(await in_db(batch_rows.find)(request.user, batch_id))


@router.post("/{batch_id}/cancel")
async def cancel_batch(request: HttpRequest, batch_id: str) -> dict[str, Any]:
    """End it with what is done by now."""
    return value_of(await in_db(batch_rows.cancel)(request.user, batch_id))


def value_of(row: Batch) -> dict[str, Any]:
    """As OpenAI shows a batch; what is not there yet is left out."""
    times = {name: getattr(row, name) for name in _TIMES}
    found = {
        "model": row.model or None,
        "errors": {"object": "list", "data": row.errors} if row.errors else None,
        "output_file_id": public_id(row.output_file),
        "error_file_id": public_id(row.error_file),
        **{name: int(time.timestamp()) for name, time in times.items() if time},
    }
    return {
        "id": row.public_id,
        "object": "batch",
        "endpoint": row.endpoint,
        "input_file_id": f"{files.PREFIX}{row.input_file.hex}",
        "completion_window": "24h",
        "status": row.status,
        "created_at": int(row.created_at.timestamp()),
        "request_counts": {
            "total": row.num_lines,
            "completed": row.num_completed,
            "failed": row.num_failed,
        },
        "usage": _usage(row),
        "metadata": row.metadata,
        **{name: value for name, value in found.items() if value is not None},
    }


def _usage(row: Batch) -> dict[str, Any]:
    return {
        "input_tokens": row.prompt_tokens,
        "input_tokens_details": {"cached_tokens": row.cached_tokens},
        "output_tokens": row.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": row.reasoning_tokens},
        "total_tokens": row.prompt_tokens + row.completion_tokens,
    }
