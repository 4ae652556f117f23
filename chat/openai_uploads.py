"""Uploads under /v1: the multipart body straight to its place on disk, within a limit."""

import errno
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from chat import file_store
from chat.api_errors import ApiError
from chat.storable import storable

PURPOSES = ("assistants", "batch", "user_data")
_MAX_NAME_CHARS = 255
_EXPIRES_S = range(3600, 2_592_001)  # OpenAI's own: an hour to 30 days


@dataclass(frozen=True, slots=True)
class Upload:
    """`expires_s` counts from now; None: the caller has not said."""

    purpose: str
    name: str
    size_bytes: int
    expires_s: int | None


@dataclass(frozen=True, slots=True)
class Received:
    """The fields of a form, and its file, which is not empty, as its owner calls it."""

    fields: QueryDict
    name: str
    media_type: str
    size_bytes: int


def refuse_sessions(request: HttpRequest, told: str) -> None:
    """Raises ApiError for a browser, in words that `told` begins: its form has been read by now, for a
    token against forgery, and not to our place."""
    if getattr(request, "auth_method", "") == "session":
        message = f"{told} with an API key or an access token."
        raise ApiError(403, "api_key_required", message)


def receive(request: HttpRequest, path: Path, limit: "Limit") -> Upload:
    """Write the file that is sent to `path`, which does not exist. In a thread.

    Raises ApiError for what is wrong; whatever is raised, `path` may be there and is the caller's to
    remove.
    """
    hint = "Send the file as multipart/form-data, with the fields file and purpose."
    received = receive_form(request, lambda: path.open("xb"), limit, hint=hint)
    fields = received.fields
    purpose = _purpose(fields.get("purpose"))
    return Upload(purpose, received.name, received.size_bytes, _expires_s(fields))


def receive_form(
    request: HttpRequest, opened: Callable[[], BinaryIO], limit: "Limit", *, hint: str
) -> Received:
    """Write the part `file` of a form to what `opened` opens, and close it. In a thread.

    Raises ApiError for what is wrong; `hint` tells those who send no form what to send.
    """
    with closing(_OneFile(opened, limit)) as handler:
        fields = parse_form(request, handler, hint=hint)
    if not handler.has_begun:
        raise ApiError(400, "missing_file", "file: a file with a name is required.", "file")
    if not handler.size_bytes:
        raise ApiError(400, "empty_file", "file: the file is empty.", "file")
    return Received(fields, handler.name, handler.media_type, handler.size_bytes)


def parse_form(request: HttpRequest, handler: FileUploadHandler, *, hint: str) -> QueryDict:
    """The fields of a form, whose files `handler` takes. In a thread.

    Raises ApiError for what is wrong; `hint` tells those who send no form what to send.
    """
    if request.content_type != "multipart/form-data":
        raise ApiError(415, "unsupported_media_type", hint)
    boundary = (request.content_params or {}).get("boundary", "")
    meta = {
        **request.META,
        # As the parser knows it: names of parameters, and the type, may be written large.
        "CONTENT_TYPE": f'multipart/form-data; boundary="{boundary}"',
        # What comes in chunks has no length, which the parser would take for nothing.
        "CONTENT_LENGTH": request.META.get("CONTENT_LENGTH") or "1",
    }
    body: Any = _Body(request, boundary)
    try:
        fields, _ = MultiPartParser(meta, body, [handler], "utf-8").parse()
    except (MultiPartParserError, SuspiciousOperation, UnreadablePostError) as error:
        raise ApiError(400, "invalid_multipart", f"The multipart body: {error}") from None
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise ApiError(507, "storage_full", "The server has no room for this file.") from None
    if not body.is_whole:
        raise ApiError(
            400, "invalid_multipart", "The multipart body ends before its last boundary."
        )
    return fields


def _purpose(purpose: str | None) -> str:
    if purpose not in PURPOSES:
        kept = ", ".join(PURPOSES)
        message = f"purpose: files are kept here for {kept}, and for nothing else."
        raise ApiError(400, "invalid_value", message, "purpose")
    return purpose


def _expires_s(fields: Any) -> int | None:
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    is_number = seconds is not None and seconds.isascii() and seconds.isdigit() and len(seconds) < 9
    if anchor != "created_at" or not is_number or int(seconds) not in _EXPIRES_S:
        message = "expires_after: the anchor created_at, and 3600 to 2592000 seconds."
        raise ApiError(400, "invalid_value", message, "expires_after")
    return int(seconds)


@dataclass(frozen=True, slots=True)
class Limit:
    """How large a file may be, and what is said of one that is larger."""

    size_bytes: int
    error: ApiError


class _Body:
    """A request's body, whose end is remembered: Django's parser takes one that was cut for whole."""

    is_whole = False

    def __init__(self, request: HttpRequest, boundary: str) -> None:
        self._request = request
        self._last = f"--{boundary}--".encode()
        self._tail = b""

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._request.read(size)
        seen = self._tail + data
        self.is_whole = self.is_whole or self._last in seen
        self._tail = seen[-len(self._last) :]
        return data


class _OneFile(FileUploadHandler):
    """Takes the part `file` and no other."""

    def __init__(self, opened: Callable[[], BinaryIO], limit: Limit) -> None:
        super().__init__()
        self.opened = opened
        self.limit = limit
        self.name = self.media_type = ""
        self.size_bytes = 0
        self._file: BinaryIO | None = None

    @property
    def has_begun(self) -> bool:
        return self._file is not None

    def new_file(
        self, field_name: str, file_name: str, content_type: str, *args: Any, **kwargs: Any
    ) -> None:
        if field_name != "file" or self.has_begun:
            raise ApiError(
                400, "invalid_multipart", "file: exactly one file, in this field.", "file"
            )
        self.name = storable(file_name)[:_MAX_NAME_CHARS]
        self.media_type = storable(content_type or "")[:_MAX_NAME_CHARS]
        self._file = self.opened()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        assert self._file is not None
        self.size_bytes += len(raw_data)
        if self.size_bytes > self.limit.size_bytes:
            raise self.limit.error
        self._file.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        assert self._file is not None
        file_store.make_safe(self._file)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
