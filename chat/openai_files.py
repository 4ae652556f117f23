"""/v1/files: upload, list, look up, read and delete. Source: OpenAI's API description."""

from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import content_disposition_header
from ninja import Router
from pydantic import Field

from chat import file_store, files
from chat.api_errors import ApiError
from chat.db import in_db
from chat.ids import uuid7
from chat.models import ApiFile
from chat.off_loop import off_loop
from chat.openai_uploads import Limit, receive, refuse_sessions
from chat.rights import Rights, rights_of
from chat.storable import is_storable
from chat.streaming import ClosingStream

router = Router()

_CHUNK_BYTES = 2**18
_UPLOADS = ThreadPoolExecutor(2, thread_name_prefix="uploads")
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"enum": ["assistants", "batch", "user_data"]},
                        "expires_after[anchor]": {"enum": ["created_at"]},
                        "expires_after[seconds]": {"type": "integer"},
                    },
                }
            }
        },
    }
}


@router.post("", openapi_extra=_BODY)
async def upload_file(request: HttpRequest) -> dict[str, Any]:
    """Keep a file: `batch` for the requests of a batch, `user_data` and `assistants` for any use."""
    rights = rights_of(request)
    refuse_sessions(request, "Files are uploaded")
    rights.require_files()
    # In threads of their own: those for queries are few, and an upload may take long.
    return value_of(await in_db(_keep, _UPLOADS)(rights, request))


def _keep(rights: Rights, request: HttpRequest) -> ApiFile:
    """All in one thread: a caller who goes leaves a file with its row, or neither."""
    row_id = uuid7()
    try:
        upload = receive(request, file_store.path_of(row_id), _limit(rights))
        row = ApiFile(
            id=row_id,
            owner=rights.user,
            purpose=upload.purpose,
            name=upload.name,
            size_bytes=upload.size_bytes,
            expires_at=_expires_at(upload.purpose, upload.expires_s),
        )
        files.add(rights.user, row)
    except BaseException:
        file_store.remove(row_id)
        raise
    return row


def _limit(rights: Rights) -> Limit:
    room = files.room_for(rights.user)
    mib = rights.user.tier.upload_mib
    if mib is None or mib * files.MIB > room:
        return Limit(room, files.no_room())
    message = f"file: your plan takes files of up to {mib:,} MiB."
    return Limit(mib * files.MIB, ApiError(413, "file_too_large", message, "file"))


def _expires_at(purpose: str, expires_s: int | None) -> Any:
    if expires_s is not None:
        return timezone.now() + timedelta(seconds=expires_s)
    return timezone.now() + files.KEEP_BATCHES if purpose == "batch" else None


@router.get("")
async def list_files(
    request: HttpRequest,
    purpose: str = "",
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
    after: str = "",
) -> dict[str, Any]:
    if not is_storable(purpose):
        return list_of([], limit)  # nothing has it
    page = in_db(files.page)
    newest_first = order == "desc"
    rows = await page(request.user, purpose, limit=limit, newest_first=newest_first, after=after)
    return list_of([value_of(row) for row in rows], limit)


@router.get("/{file_id}")
async def show_file(request: HttpRequest, file_id: str) -> dict[str, Any]:
    return value_of(await in_db(files.find)(request.user, file_id))


@router.delete("/{file_id}")
async def delete_file(request: HttpRequest, file_id: str) -> dict[str, Any]:
    """Not while a batch reads it."""
    await in_db(files.delete)(request.user, file_id)
    return {"id": file_id, "object": "file", "deleted": True}


@router.get("/{file_id}/content")
async def read_file(request: HttpRequest, file_id: str) -> ClosingStream:
    """The file itself."""
    row = await in_db(files.find)(request.user, file_id)
    path = file_store.path_of(row.pk)
    if not await off_loop(path.exists):
        raise ApiError(404, "not_found", "What was in this file is gone.")
    headers = {
        "Content-Length": str(row.size_bytes),
        "Content-Disposition": content_disposition_header(True, row.name) or "attachment",
        "Cache-Control": "no-store",
    }
    # Never as what it says it is: it would be shown as a page of ours.
    kind = "application/octet-stream"
    return ClosingStream(_chunks(path), content_type=kind, headers=headers)


async def _chunks(path: Path) -> AsyncGenerator[bytes, None]:
    with await off_loop(path.open, "rb") as file:
        while chunk := await off_loop(file.read, _CHUNK_BYTES):
            yield chunk


def value_of(row: ApiFile) -> dict[str, Any]:
    """As OpenAI shows a file."""
    expiry = {"expires_at": int(row.expires_at.timestamp())} if row.expires_at else {}
    return {
        "id": f"{files.PREFIX}{row.pk.hex}",
        "object": "file",
        "bytes": row.size_bytes,
        "created_at": int(row.created_at.timestamp()),
        "filename": row.name,
        "purpose": row.purpose,
        "status": "processed",
        **expiry,
    }


def list_of(values: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """A page as OpenAI shows it, of up to `limit` values; one more of them tells that there are more."""
    shown = values[:limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else "",
        "last_id": shown[-1]["id"] if shown else "",
        "has_more": len(values) > limit,
    }
