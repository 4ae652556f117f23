"""Pictures that a form brings to be changed: kept in files without names, as long as they are needed."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, QueryDict

from chat.api_errors import ApiError
from chat.openai_uploads import parse_form
from inference import MADE_KINDS, GivenPicture, picture_kind

MAX_PICTURES = 16  # OpenAI's own bound
MAX_BYTES = 50 * 2**20  # of all of them together; a body has 64 MiB at most
_HINT = "Send pictures as multipart/form-data, with the fields image and prompt."
_HEAD_BYTES = 12


@dataclass(frozen=True, slots=True)
class ReceivedPictures:
    """One picture at least, in the order in which they came."""

    fields: QueryDict
    given: tuple[GivenPicture, ...]
    mask: GivenPicture | None


def receive_pictures(request: HttpRequest, held: ExitStack) -> ReceivedPictures:
    """What a form brings; the files are there until `held` is closed. In a thread.

    Raises ApiError for what is wrong.
    """
    handler = _Pictures(held)
    fields = parse_form(request, handler, hint=_HINT)
    if not handler.given:
        raise ApiError(400, "missing_file", "image: a file with a name is required.", "image")
    return ReceivedPictures(fields, tuple(handler.given), handler.mask)


class _Pictures(FileUploadHandler):
    """Takes parts `image`, which clients call `image[]` where they send several, and a `mask`."""

    def __init__(self, held: ExitStack) -> None:
        super().__init__()
        self.given: list[GivenPicture] = []
        self.mask: GivenPicture | None = None
        self._held = held
        self._size_bytes = 0
        self._name = ""
        self._head = b""
        self._file: BinaryIO | None = None

    def new_file(self, field_name: str, *args: Any, **kwargs: Any) -> None:
        self._name = field_name.partition("[")[0]
        if self._name not in ("image", "mask"):
            message = "Files are an image, or several, and a mask."
            raise ApiError(400, "invalid_multipart", message, "image")
        if self._name == "image" and len(self.given) == MAX_PICTURES:
            message = f"image: at most {MAX_PICTURES} pictures."
            raise ApiError(400, "invalid_value", message, "image")
        if self._name == "mask" and self.mask is not None:
            raise ApiError(400, "invalid_value", "mask: there is one at most.", "mask")
        self._file = self._held.enter_context(TemporaryFile())  # noqa: SIM115  `held` closes it
        self._head = b""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        assert self._file is not None
        self._size_bytes += len(raw_data)
        if self._size_bytes > MAX_BYTES:
            message = f"{self._name}: pictures may have {MAX_BYTES // 2**20} MiB together."
            raise ApiError(413, "content_too_large", message, self._name)
        self._head = (self._head + raw_data[:_HEAD_BYTES])[:_HEAD_BYTES]
        self._file.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        assert self._file is not None
        self._file.flush()
        kind = picture_kind(self._head)
        kinds = MADE_KINDS[:1] if self._name == "mask" else MADE_KINDS
        if kind is None or kind not in kinds:
            what = "a mask is a PNG" if self._name == "mask" else "this is no PNG, JPEG or WebP"
            raise ApiError(400, "invalid_image", f"{self._name}: {what}.", self._name)
        # Where it can be opened anew, as long as it is held.
        picture = GivenPicture(Path(f"/proc/self/fd/{self._file.fileno()}"), kind)
        if self._name == "mask":
            self.mask = picture
        else:
            self.given.append(picture)
