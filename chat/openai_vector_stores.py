"""/v1/vector_stores: stores, their files and batches, and the search.

Source: OpenAI's API description.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from kombu.exceptions import OperationalError
from ninja import Router
from pydantic import Field

from chat import vector_store_files, vector_stores
from chat.db import in_db
from chat.idempotency import idempotent
from chat.openai_files import list_of
from chat.rights import rights_of
from chat.vector_store_files import batch_value, file_value
from chat.vector_store_schemas import (
    AttributesIn,
    FileBatchIn,
    VectorStoreChange,
    VectorStoreFileIn,
    VectorStoreIn,
    VectorStoreSearchIn,
)
from chat.vector_store_search import search_store
from chat.vector_stores import Cursor
from retrieval import tasks
from retrieval.models import Document

router = Router()

Status = Literal["in_progress", "completed", "failed", "cancelled"]
Limit = Annotated[int, Field(ge=1, le=100)]
Order = Literal["asc", "desc"]


# --- stores -----------------------------------------------------------------------------------------


@router.post("")
@idempotent
async def create_vector_store(request: HttpRequest, data: VectorStoreIn) -> HttpResponse:
    """Make a store, with files of /v1/files in it. It is a collection, which people can pick."""
    rights_of(request).require_files()
    value, to_read = await in_db(_create)(request.user, data)
    await _begin(to_read)
    return JsonResponse(value)


@router.get("")
async def list_vector_stores(
    request: HttpRequest,
    limit: Limit = 20,
    order: Order = "desc",
    after: str = "",
    before: str = "",
) -> dict[str, Any]:
    """Your own, and those that are shared with you."""
    cursor = Cursor(limit, order == "desc", after, before)
    return list_of(await in_db(_stores)(request.user, cursor), limit)


@router.get("/{vector_store_id}")
async def show_vector_store(request: HttpRequest, vector_store_id: str) -> dict[str, Any]:
    return await in_db(_store)(request.user, vector_store_id)


@router.post("/{vector_store_id}")
async def change_vector_store(
    request: HttpRequest, vector_store_id: str, data: VectorStoreChange
) -> dict[str, Any]:
    """What is left out stays as it is."""
    return await in_db(_change)(request.user, vector_store_id, data)


@router.delete("/{vector_store_id}")
async def delete_vector_store(request: HttpRequest, vector_store_id: str) -> dict[str, Any]:
    """With its files, but not those under /v1/files that they came from."""
    await in_db(vector_stores.delete)(request.user, vector_store_id)
    return {"id": vector_store_id, "object": "vector_store.deleted", "deleted": True}


@router.post("/{vector_store_id}/search")
async def search_vector_store(
    request: HttpRequest, vector_store_id: str, data: VectorStoreSearchIn
) -> dict[str, Any]:
    """The passages that fit best, by words and by meaning."""
    return await search_store(rights_of(request), vector_store_id, data)


# --- files ------------------------------------------------------------------------------------------


@router.post("/{vector_store_id}/files")
async def attach_file(
    request: HttpRequest, vector_store_id: str, data: VectorStoreFileIn
) -> dict[str, Any]:
    """Copy a file of /v1/files into the store, where it is read."""
    rights_of(request).require_files()
    value, to_read = await in_db(_attach)(request.user, vector_store_id, data)
    await _begin(to_read)
    return value


@router.get("/{vector_store_id}/files")
async def list_store_files(
    request: HttpRequest,
    vector_store_id: str,
    limit: Limit = 20,
    order: Order = "desc",
    after: str = "",
    before: str = "",
    filter: Status | None = None,
) -> dict[str, Any]:
    cursor = Cursor(limit, order == "desc", after, before)
    return list_of(await in_db(_files)(request.user, vector_store_id, filter, cursor), limit)


@router.get("/{vector_store_id}/files/{file_id}")
async def show_store_file(
    request: HttpRequest, vector_store_id: str, file_id: str
) -> dict[str, Any]:
    return await in_db(_file)(request.user, vector_store_id, file_id)


@router.post("/{vector_store_id}/files/{file_id}")
async def change_store_file(
    request: HttpRequest, vector_store_id: str, file_id: str, data: AttributesIn
) -> dict[str, Any]:
    """Its attributes, all of them."""
    change = in_db(vector_store_files.set_attributes)
    return file_value(await change(request.user, vector_store_id, file_id, data.attributes or {}))


@router.delete("/{vector_store_id}/files/{file_id}")
async def delete_store_file(
    request: HttpRequest, vector_store_id: str, file_id: str
) -> dict[str, Any]:
    """Out of the store; the file under /v1/files stays."""
    await in_db(vector_store_files.delete_file)(request.user, vector_store_id, file_id)
    return {"id": file_id, "object": "vector_store.file.deleted", "deleted": True}


@router.get("/{vector_store_id}/files/{file_id}/content")
async def read_store_file(
    request: HttpRequest, vector_store_id: str, file_id: str
) -> dict[str, Any]:
    """The text that was read of it; no part before it has been."""
    text = await in_db(vector_store_files.text_of)(request.user, vector_store_id, file_id)
    return {
        "object": "vector_store.file_content.page",
        "data": [] if text is None else [{"type": "text", "text": text}],
        "has_more": False,
        "next_page": None,
    }


# --- batches ----------------------------------------------------------------------------------------


@router.post("/{vector_store_id}/file_batches")
async def create_file_batch(
    request: HttpRequest, vector_store_id: str, data: FileBatchIn
) -> dict[str, Any]:
    """Copy many files at once."""
    rights_of(request).require_files()
    value, to_read = await in_db(_create_batch)(request.user, vector_store_id, data)
    await _begin(to_read)
    return value


@router.get("/{vector_store_id}/file_batches/{batch_id}")
async def show_file_batch(
    request: HttpRequest, vector_store_id: str, batch_id: str
) -> dict[str, Any]:
    return await in_db(_batch)(request.user, vector_store_id, batch_id)


@router.post("/{vector_store_id}/file_batches/{batch_id}/cancel")
async def cancel_file_batch(
    request: HttpRequest, vector_store_id: str, batch_id: str
) -> dict[str, Any]:
    """What has not been read by now is not read any more."""
    return await in_db(_cancel)(request.user, vector_store_id, batch_id)


@router.get("/{vector_store_id}/file_batches/{batch_id}/files")
async def list_batch_files(
    request: HttpRequest,
    vector_store_id: str,
    batch_id: str,
    limit: Limit = 20,
    order: Order = "desc",
    after: str = "",
    before: str = "",
    filter: Status | None = None,
) -> dict[str, Any]:
    cursor = Cursor(limit, order == "desc", after, before)
    page = in_db(_files)
    return list_of(await page(request.user, vector_store_id, filter, cursor, batch_id), limit)


# --- in a thread ------------------------------------------------------------------------------------


async def _begin(versions: Sequence[UUID]) -> None:
    """Tell the task workers. Without a broker the rows are found by those who look for such."""

    def tell() -> None:
        for version_id in versions:
            tasks.read_version.delay(str(version_id))

    with suppress(OperationalError, OSError):
        await asyncio.to_thread(tell)


def _create(user: Any, data: VectorStoreIn) -> tuple[dict[str, Any], list[UUID]]:
    with transaction.atomic():
        row = vector_stores.create(
            user,
            name=data.name,
            description=data.description,
            metadata=data.metadata,
            expires_after_days=data.expires_after.days if data.expires_after else None,
        )
        ids = dict.fromkeys(data.file_ids or [])
        wanted = [
            VectorStoreFileIn(file_id=id_, chunking_strategy=data.chunking_strategy) for id_ in ids
        ]
        to_read = vector_store_files.attach(user, row, wanted, "file_ids")
    return vector_stores.value_of(row), to_read


def _stores(user: Any, cursor: Cursor) -> list[dict[str, Any]]:
    return vector_stores.values_of(vector_stores.page(user, cursor))


def _store(user: Any, store_id: str) -> dict[str, Any]:
    return vector_stores.value_of(vector_stores.find(user, store_id))


def _change(user: Any, store_id: str, data: VectorStoreChange) -> dict[str, Any]:
    given = data.model_fields_set
    changes: dict[str, Any] = {}
    if data.name is not None:
        changes["name"] = data.name
    if "metadata" in given:
        changes["metadata"] = data.metadata or {}
    if "expires_after" in given:
        changes["expires_after_days"] = data.expires_after.days if data.expires_after else None
    return vector_stores.value_of(vector_stores.change(user, store_id, changes))


def _attach(user: Any, store_id: str, data: VectorStoreFileIn) -> tuple[dict[str, Any], list[UUID]]:
    store = vector_stores.find_to_write(user, store_id)
    to_read = vector_store_files.attach(user, store, [data], "file_id")
    return file_value(vector_store_files.find_file(store, data.file_id)), to_read


def _files(
    user: Any, store_id: str, status: str | None, cursor: Cursor, batch_id: str | None = None
) -> list[dict[str, Any]]:
    store = vector_stores.find(user, store_id)
    batch = None if batch_id is None else vector_store_files.find_batch(store, batch_id)
    return [file_value(row) for row in vector_store_files.page(store, status, cursor, batch)]


def _file(user: Any, store_id: str, file_id: str) -> dict[str, Any]:
    row: Document = vector_store_files.find_file(vector_stores.find(user, store_id), file_id)
    return file_value(row)


def _create_batch(user: Any, store_id: str, data: FileBatchIn) -> tuple[dict[str, Any], list[UUID]]:
    param = "file_ids" if data.files is None else "files"
    row, to_read = vector_store_files.create_batch(user, store_id, data.each, param)
    return batch_value(row), to_read


def _batch(user: Any, store_id: str, batch_id: str) -> dict[str, Any]:
    return batch_value(vector_store_files.find_batch(vector_stores.find(user, store_id), batch_id))


def _cancel(user: Any, store_id: str, batch_id: str) -> dict[str, Any]:
    return batch_value(vector_store_files.cancel_batch(user, store_id, batch_id))
