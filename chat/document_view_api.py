"""REST of the document viewer: a version's facts, its text in pieces, its pages as pictures, where a
passage is on them, and the file itself."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.http import content_disposition_header, parse_etags, quote_etag
from django.utils.translation import gettext
from ninja import Router
from pydantic import Field

from chat import document_view
from chat.api_errors import ApiError
from chat.db import in_db
from chat.document_view import Viewed
from chat.off_loop import off_loop, off_loop_for_pictures
from chat.streaming import ClosingStream
from retrieval.parsing import PICTURE_LIMITS, Box, Unreadable, boxes, picture

router = Router()

_CHUNK_BYTES = 2**18
_MAX_MARKED_PAGES = 4  # of one passage; each is a process that reads the file
_WIDTHS_PX = (200, 800, 1200, 1600, 2400)
"""A picture is one of these wide, so that the browser's own cache has it for a window a little wider."""

Place = Annotated[int, Field(ge=0, le=2**31 - 1)]


@router.get("/{document_id}/view")
async def show_view(request: HttpRequest, document_id: str, version: str = "") -> dict[str, Any]:
    """What is known of a version: its state, its pages, and what was left out of its text."""
    look = in_db(document_view.view)
    return document_view.facts(await look(request.user, document_id, version, is_counted=True))


@router.get("/{document_id}/text")
async def read_text(
    request: HttpRequest,
    document_id: str,
    version: str = "",
    start: Place = 0,
    end: Place = document_view.MAX_CHARS,
) -> dict[str, Any]:
    """The characters of a version's text from `start` to before `end`, at most 50,000 of them."""

    def read() -> dict[str, Any]:
        viewed = document_view.view(request.user, document_id, version, is_counted=True)
        text = document_view.text_between(viewed.version, start, end)
        return {
            "version": str(viewed.version.pk),
            "start": start,
            "end": start + len(text),
            "text": text,
            "num_chars": viewed.num_chars,
        }

    return await in_db(read)()


@router.get("/{document_id}/pages/{number}")
async def show_page(
    request: HttpRequest,
    document_id: str,
    number: int,
    version: str = "",
    width: Annotated[int, Field(ge=1, le=10_000)] = 1200,
) -> HttpResponse:
    """A page of a PDF, or of a file that is a picture, as a WebP some `width` pixels wide."""
    viewed = await in_db(document_view.view)(request.user, document_id, version)
    if viewed.kind == "text":
        raise ApiError(404, "not_found", gettext("Of such a file there is no picture."))
    width_px = wide_enough(width)
    # A version never changes. Who may see it does: so the browser asks each time, and draws what it has.
    tag = quote_etag(f"{viewed.version.pk}-{number}-{width_px}")
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponse(status=304)
    else:
        shown = await _of_file(picture, viewed.path, number, width_px)
        response = HttpResponse(shown.data, content_type="image/webp")
    response["ETag"], response["Cache-Control"] = tag, "private, no-cache"
    patch_vary_headers(response, ["Cookie", "Authorization"])  # of one person, not of a browser
    return response


def wide_enough(width: int) -> int:
    return next((one for one in _WIDTHS_PX if one >= width), _WIDTHS_PX[-1])


@router.get("/{document_id}/boxes")
async def show_boxes(
    request: HttpRequest, document_id: str, start: Place, end: Place, version: str = ""
) -> dict[str, Any]:
    """Where a passage is on the pages of a PDF: `[x0, y0, x1, y1]` in points from the top left."""
    viewed = await in_db(document_view.view)(request.user, document_id, version)
    if viewed.kind != "pdf" or viewed.is_other or start >= end:
        return {"pages": []}
    marked = [
        (number, max(start, page[0]) - page[0], min(end, page[1]) - page[0])
        for number, page in enumerate(viewed.version.pages, 1)
        if page[0] < end and start < page[1]
    ]
    return {
        "pages": [
            {
                "number": number,
                "boxes": [
                    _value(box)
                    for box in await _of_file(
                        boxes, viewed.path, number, first, last, limits=PICTURE_LIMITS
                    )
                ],
            }
            for number, first, last in marked[:_MAX_MARKED_PAGES]
        ]
    }


def _value(box: Box) -> list[float]:
    return [round(side, 2) for side in (box.x0, box.y0, box.x1, box.y1)]


async def _of_file(look: Any, path: Path, *args: Any, **kwargs: Any) -> Any:
    """What a process of its own sees in the file. Raises ApiError."""
    try:
        return await off_loop_for_pictures(look, path, *args, **kwargs)
    except FileNotFoundError:
        raise _gone() from None
    except Unreadable as error:
        raise ApiError(422, error.code, error.message) from None


@router.get("/{document_id}/content")
async def read_content(request: HttpRequest, document_id: str, version: str = "") -> ClosingStream:
    """The file as it was uploaded."""
    viewed = await in_db(document_view.view)(request.user, document_id, version)
    size_bytes = await _size_bytes(viewed)
    headers = {
        "Content-Length": str(size_bytes),
        "Content-Disposition": content_disposition_header(True, viewed.document.name)
        or "attachment",
        "Cache-Control": "no-store",
    }
    # Never as what it says it is: it would be shown as a page of ours.
    kind = "application/octet-stream"
    return ClosingStream(_chunks(viewed.path), content_type=kind, headers=headers)


async def _size_bytes(viewed: Viewed) -> int:
    try:
        return (await off_loop(viewed.path.stat)).st_size
    except FileNotFoundError:
        raise _gone() from None


async def _chunks(path: Path) -> AsyncGenerator[bytes, None]:
    with await off_loop(path.open, "rb") as file:
        while chunk := await off_loop(file.read, _CHUNK_BYTES):
            yield chunk


def _gone() -> ApiError:
    return ApiError(404, "not_found", gettext("The file of this document is gone."))
