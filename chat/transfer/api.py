"""REST of export and import, under /api."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from kombu.exceptions import OperationalError
from ninja import Router, Schema, Status
from redis.exceptions import RedisError

from chat import access, history, tasks
from chat.db import in_db
from chat.errors import NotFound
from chat.ids import uuid7
from chat.models import WORKING_IMPORTS, ChatImport
from chat.off_loop import off_loop
from chat.request_bodies import pieces_of
from chat.streaming import ClosingStream
from chat.transfer import export, importing
from chat.values import Value
from chat.wire import dumps

router = Router()

_LOOK_S = 0.5
_KEEP_PROGRESS_S = 3600
_NOT_BEGUN_S = 5.0  # then a browser asks anew, if it still wants to know
_QUIET = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

# --- export ----------------------------------------------------------------------------------------


@router.get("/conversations/{conversation_id}/export")
async def export_conversation(
    request: HttpRequest,
    conversation_id: str,
    format: Literal["json", "markdown"] = "json",
    branches: Literal["shown", "all"] = "shown",
) -> HttpResponse:
    """One chat as a file: JSON with its whole tree, or Markdown of the shown branch or of all."""
    name, data = await in_db(_exported)(request.user, conversation_id, format, branches)
    kind = "application/json" if format == "json" else "text/markdown; charset=utf-8"
    disposition = content_disposition_header(True, name) or "attachment"
    return HttpResponse(data, content_type=kind, headers={"Content-Disposition": disposition})


def _exported(user: Any, conversation_id: str, format: str, branches: str) -> tuple[str, bytes]:
    row = access.conversation_for(user, conversation_id)
    rows = history.messages_of([row])[row.pk]
    if format == "json":
        return export.file_name(row, "json"), export.json_of([(row, rows)], timezone.now())
    data = export.markdown_of(row, rows, all_branches=branches == "all")
    return export.file_name(row, "md"), data


@router.get("/export")
async def export_all(
    request: HttpRequest, format: Literal["json", "markdown"] = "json", progress: UUID | None = None
) -> ClosingStream:
    """All chats as a zip. `progress` is any UUID, under which `/api/export/progress/UUID` tells it."""
    name = content_disposition_header(True, f"vitrine-chats-{timezone.now():%Y-%m-%d}.zip")
    return ClosingStream(
        _export_with_progress(request.user, format, progress),
        content_type="application/zip",
        headers={"Content-Disposition": name or "attachment", **_QUIET},
    )


async def _export_with_progress(
    user: Any, kind: str, id_: UUID | None
) -> AsyncGenerator[bytes, None]:
    progress = export.Progress()
    is_over = False
    try:
        async for piece in export.zipped(user, kind, progress):
            await _tell_progress(user, id_, progress, is_over=False)
            yield piece
        is_over = True
    finally:
        await _tell_progress(user, id_, progress, is_over=True, has_failed=not is_over)


def _progress_key(user: Any, id_: UUID) -> str:
    return f"export-progress-{user.pk}-{id_.hex}"


async def _tell_progress(
    user: Any, id_: UUID | None, progress: export.Progress, **more: bool
) -> None:
    if id_ is None:
        return
    value = {"done": progress.done, "total": progress.total, **more}
    with suppress(RedisError, OSError):  # an export does not fail for its progress
        await cache.aset(_progress_key(user, id_), value, _KEEP_PROGRESS_S)


@router.get("/export/progress/{progress_id}")
async def export_progress(request: HttpRequest, progress_id: UUID) -> ClosingStream:
    """Server-sent events `{done, total, is_over}` of an export of yours, until it is over; some seconds
    only, where none has begun under this id."""
    deadline_s = monotonic() + _NOT_BEGUN_S

    async def look() -> tuple[Value, bool]:
        value: Value | None = None
        with suppress(RedisError, OSError):
            value = await cache.aget(_progress_key(request.user, progress_id))
        if value is None:
            return {"done": 0, "total": 0, "is_over": False}, monotonic() >= deadline_s
        return value, bool(value["is_over"])

    return _watched(look)


# --- import ----------------------------------------------------------------------------------------


class ImportAnswer(Schema):
    id: UUID
    file_name: str
    size_bytes: int
    status: str
    error: str
    report: dict[str, Any]
    created_at: str


@router.post("/imports", response={201: ImportAnswer})
async def upload_import(request: HttpRequest, name: str = "chats") -> Status[ImportAnswer]:
    """Upload a file of chats as the body, to be checked; nothing is imported yet."""
    import_id = uuid7()
    try:
        size_bytes = await off_loop(_store, request, import_id)
        row = await in_db(importing.begin)(request.user, import_id, name, size_bytes)
    except BaseException:
        importing.path_of(import_id).unlink(missing_ok=True)
        raise
    await _send_task(row)
    return Status(201, _answer(row))


def _store(request: HttpRequest, import_id: UUID) -> int:
    """Raises TooLarge."""
    with importing.path_of(import_id).open("xb") as file:
        file.writelines(pieces_of(request, settings.MAX_IMPORT_BYTES))
        return file.tell()


@router.get("/imports", response=dict[str, list[ImportAnswer]])
async def list_imports(request: HttpRequest) -> dict[str, list[ImportAnswer]]:
    """Your last ten imports, newest first."""
    rows = await in_db(_last_imports)(request.user)
    return {"items": [_answer(row) for row in rows]}


@router.get("/imports/{import_id}", response=ImportAnswer)
async def show_import(request: HttpRequest, import_id: UUID) -> ImportAnswer:
    """How an import stands; with the status `checked` its report says what would be imported."""
    return _answer(await in_db(importing.import_for)(request.user, import_id))


@router.get("/imports/{import_id}/events")
async def import_events(request: HttpRequest, import_id: UUID) -> ClosingStream:
    """The same as server-sent events, whenever it changes, until nothing is at work."""
    await in_db(importing.import_for)(request.user, import_id)

    async def look() -> tuple[Value, bool]:
        try:
            row = await in_db(importing.import_for)(request.user, import_id)
        except NotFound:
            return {}, True
        return _answer(row).model_dump(mode="json"), row.status not in WORKING_IMPORTS

    return _watched(look)


@router.post("/imports/{import_id}/start", response=ImportAnswer)
async def start_import(request: HttpRequest, import_id: UUID) -> ImportAnswer:
    """Import what the report says. A second time changes nothing."""
    row = await in_db(importing.start)(request.user, import_id)
    await _send_task(row)
    return _answer(row)


@router.delete("/imports/{import_id}", response={204: None})
async def remove_import(request: HttpRequest, import_id: UUID) -> Status[None]:
    """Stop it and forget its file. Chats that are imported already stay."""
    await in_db(importing.remove)(request.user, import_id)
    return Status(204, None)


def _last_imports(user: Any) -> list[ChatImport]:
    return list(ChatImport.objects.filter(owner_id=user.pk).order_by("-pk")[:10])


def _answer(row: ChatImport) -> ImportAnswer:
    return ImportAnswer(
        id=row.pk,
        file_name=row.file_name,
        size_bytes=row.size_bytes,
        status=row.status,
        error=row.error,
        report=row.report,
        created_at=row.created_at.isoformat(),
    )


async def _send_task(row: ChatImport) -> None:
    """Without a broker the sweeper finds the row (chat.tasks.resume_imports)."""
    with suppress(OperationalError, OSError):
        await asyncio.to_thread(tasks.work_on_import.delay, str(row.pk))


# --- news ------------------------------------------------------------------------------------------


def _watched(look: Callable[[], Awaitable[tuple[Value, bool]]]) -> ClosingStream:
    """Server-sent events with what `look` returns, whenever it is new, until it says that it is over."""

    async def stream() -> AsyncGenerator[str, None]:
        before: Value | None = None
        while True:
            value, is_over = await look()
            yield f"data: {dumps(value)}\n\n" if value != before else ": still\n\n"
            before = value
            if is_over:
                return
            await asyncio.sleep(_LOOK_S)

    return ClosingStream(stream(), content_type="text/event-stream", headers=_QUIET)
