"""REST of documents, under /api/collections/{id}/documents and /api/documents/{id}."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import Annotated, Any

from django.http import HttpRequest
from django.utils.translation import gettext
from kombu.exceptions import OperationalError
from ninja import Router, Schema, Status
from pydantic import Field

from chat.api_errors import ApiError
from chat.db import in_db
from chat.document_uploads import Place, fetch_link, upload
from chat.document_values import document_value, version_value
from chat.errors import BadRequest
from chat.rights import Rights, rights_of
from chat.shielded import to_its_end
from chat.streaming import ClosingStream
from chat.values import Value
from chat.wire import dumps
from retrieval import collections, documents, tasks
from retrieval.errors import NotFound
from retrieval.models import UNFINISHED, Document

router = Router()

_UPLOADS = ThreadPoolExecutor(2, thread_name_prefix="documents")
_LINKS = ThreadPoolExecutor(8, thread_name_prefix="links")
MAX_LINKS_AT_ONCE = 2  # of one user: a slow server keeps a thread for a minute
_fetching: Counter[Any] = Counter()  # by user
_LOOK_S = 0.5
_ASK_AGAIN_S = 3.0  # whether the reader may still be here
_QUIET = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_BYTES = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class DocumentChange(Schema):
    name: str | None = None
    tags: list[str] | None = None


class Link(Schema):
    url: Annotated[str, Field(min_length=1, max_length=8000)]


# --- of a collection ------------------------------------------------------------------------------


@router.get("/collections/{collection_id}/documents")
async def list_documents(
    request: HttpRequest,
    collection_id: str,
    q: str = "",
    after: str = "",
    limit: Annotated[int, Field(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """Those brought last first; `q` is part of a name, `after` the id of the last one of a page."""
    rows = await in_db(_page)(request.user, collection_id, q, after, limit)
    return {"documents": rows[:limit], "has_more": len(rows) > limit}


@router.post(
    "/collections/{collection_id}/documents",
    response={201: dict[str, Any]},
    openapi_extra=_BYTES,
)
async def upload_document(
    request: HttpRequest, collection_id: str, name: str, path: str = ""
) -> Status[Value]:
    """The body is the file. One of the same name becomes its next version; the same file again, none.

    `path` is where it was in a folder that is uploaded; its folders become a part of the name.
    """
    place = Place(collection_id=collection_id)
    return Status(201, await _upload(request, place, _name(name, path)))


@router.post("/collections/{collection_id}/links", response={201: dict[str, Any]})
async def add_link(request: HttpRequest, collection_id: str, data: Link) -> Status[Value]:
    """Fetch what an address of the public internet serves; it takes up to a minute."""
    place = Place(collection_id=collection_id)
    return Status(201, await _fetch(request, place, data.url))


@router.get("/collections/{collection_id}/events")
async def document_events(request: HttpRequest, collection_id: str) -> ClosingStream:
    """Server-sent events with the documents that are on their way, whenever one has moved on."""
    await in_db(collections.collection_for)(request.user, collection_id)
    stream = _watched(request, collection_id)
    return ClosingStream(stream, content_type="text/event-stream", headers=_QUIET)


# --- of one ---------------------------------------------------------------------------------------


@router.get("/documents")
async def find_documents(
    request: HttpRequest, q: str = "", limit: Annotated[int, Field(ge=1, le=100)] = 20
) -> dict[str, Any]:
    """Of all collections that you may read, those brought last first; `q` is part of a name."""
    return {"documents": await in_db(_found)(request.user, q, limit)}


@router.post("/documents/attach", response={201: dict[str, Any]}, openapi_extra=_BYTES)
async def attach_document(request: HttpRequest, name: str) -> Status[Value]:
    """The body is a file to be attached to a message. It goes to a collection of your own."""
    place = Place(is_for_chats=True, is_new=True)
    return Status(201, await _upload(request, place, name))


@router.get("/documents/{document_id}")
async def show_document(request: HttpRequest, document_id: str) -> dict[str, Any]:
    return await in_db(_value)(request.user, document_id)


@router.patch("/documents/{document_id}")
async def change_document(
    request: HttpRequest, document_id: str, data: DocumentChange
) -> dict[str, Any]:
    changes = data.dict(exclude_none=True)
    await in_db(documents.change)(request.user, document_id, **changes)
    return await in_db(_value)(request.user, document_id)


@router.delete("/documents/{document_id}", response={204: None})
async def delete_document(request: HttpRequest, document_id: str) -> Status[None]:
    """With all its versions, its file, and all that was found in it."""
    await in_db(documents.delete)(request.user, document_id)
    return Status(204, None)


@router.get("/documents/{document_id}/versions")
async def list_versions(request: HttpRequest, document_id: str) -> dict[str, Any]:
    """The newest first."""
    return {"versions": await in_db(_versions)(request.user, document_id)}


@router.post(
    "/documents/{document_id}/versions", response={201: dict[str, Any]}, openapi_extra=_BYTES
)
async def replace_document(
    request: HttpRequest, document_id: str, name: str = "document"
) -> Status[Value]:
    """The body is the file; what is found is the version before until this one is ready."""
    return Status(201, await _upload(request, Place(document_id=document_id), name))


@router.post("/documents/{document_id}/refresh")
async def refresh_document(request: HttpRequest, document_id: str) -> dict[str, Any]:
    """Fetch it again from where it came from; what has changed is its next version."""
    row = await in_db(documents.document_for)(request.user, document_id, to_write=True)
    if not row.source_url:
        raise BadRequest(gettext("This document was not fetched from an address."))
    return await _fetch(request, Place(document_id=document_id), row.source_url)


@router.post("/documents/{document_id}/retry")
async def retry_document(request: HttpRequest, document_id: str) -> dict[str, Any]:
    """Read a file again that could not be read."""
    row = await in_db(documents.try_again)(request.user, document_id)
    value = document_value(row)
    await begin(value)
    return value


async def begin(value: Value) -> None:
    """Tell the task workers. Without a broker, the row is found by those who look for such."""
    version = value["version"]
    if version is not None and version["state"] in UNFINISHED:
        with suppress(OperationalError, OSError):
            await asyncio.to_thread(tasks.read_version.delay, version["id"])


async def _upload(request: HttpRequest, place: Place, name: str) -> Value:
    # In threads of their own: those for queries are few, and an upload may take long.
    row = await in_db(upload, _UPLOADS)(rights_of(request), request, place, name)
    value = document_value(row)
    await begin(value)
    return value


async def _fetch(request: HttpRequest, place: Place, url: str) -> Value:
    if _fetching[request.user.pk] >= MAX_LINKS_AT_ONCE:
        text = gettext("Too many attempts. Please wait a little.")
        raise ApiError(429, "too_many_links", text, retry_after_s=5.0)
    # Whoever leaves leaves a thread that still fetches, and it counts as long.
    _fetching[request.user.pk] += 1
    row = await to_its_end(_fetch_counted(rights_of(request), place, url))
    value = document_value(row)
    await begin(value)
    return value


async def _fetch_counted(rights: Rights, place: Place, url: str) -> Document:
    user_id = rights.user.pk
    try:
        return await in_db(fetch_link, _LINKS)(rights, place, url)
    finally:
        _fetching[user_id] -= 1
        if not _fetching[user_id]:
            del _fetching[user_id]


def _name(name: str, path: str) -> str:
    folders = [
        part for part in path.replace("\\", "/").split("/")[:-1] if part not in ("", ".", "..")
    ]
    return documents.FOLDER.join([*folders, name])


def _page(user: Any, collection_id: str, q: str, after: str, limit: int) -> list[Value]:
    """One more where there are more."""
    collection = collections.collection_for(user, collection_id)
    rows = documents.documents_in(collection)
    if q:
        rows = documents.called(rows, q)
    if after:
        rows = documents.behind(rows, collections.as_uuid(after, "document"))
    return [document_value(row) for row in documents.with_newest(rows)[: limit + 1]]


def _found(user: Any, q: str, limit: int) -> list[Value]:
    rows = documents.documents_for(user)
    if q:
        rows = documents.called(rows, q)
    return [document_value(row) for row in documents.with_newest(rows)[:limit]]


def _value(user: Any, document_id: str) -> Value:
    return document_value(documents.document_for(user, document_id))


def _versions(user: Any, document_id: str) -> list[Value]:
    row = documents.document_for(user, document_id)
    rows = row.versions.defer("text", "staged").order_by("-number")
    return [version_value(version) for version in rows]


async def _watched(request: HttpRequest, collection_id: str) -> AsyncGenerator[str, None]:
    """Ends by itself where the collection may be read no more, and where what the reader is here by has
    ended: a sign-out, a new password, a suspension, a key that is revoked."""
    known: dict[str, Value] = {}
    asked_s = monotonic()
    while True:
        if monotonic() - asked_s >= _ASK_AGAIN_S:
            if not await request.is_still_in():  # type: ignore[attr-defined]
                return
            asked_s = monotonic()
        try:
            found = await in_db(_unfinished)(request.user, collection_id, list(known))
        except NotFound:
            return
        news = [value for value in found if known.get(value["id"]) != value]
        yield f"data: {dumps({'documents': news})}\n\n" if news else ": still\n\n"
        known = {v["id"]: v for v in found if v["version"] and v["version"]["state"] in UNFINISHED}
        await asyncio.sleep(_LOOK_S)


def _unfinished(user: Any, collection_id: str, known: list[str]) -> list[Value]:
    """Those on their way, and those that were at the last look."""
    collection = collections.collection_for(user, collection_id)
    rows = documents.unfinished_in(collection, known)
    return [document_value(row) for row in documents.with_newest(rows)[:500]]
