"""What the viewer shows of a document: which version, what is known of it, and pieces of its text.

Who may read a row is decided by row-level security; what may not be read is as missing as what never
was.
"""

import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet, Value
from django.db.models.functions import Length, Substr

from chat.document_values import version_value
from retrieval import document_files, documents
from retrieval.errors import NotFound
from retrieval.models import Document, Version

MAX_CHARS = 50_000
"""Of one answer. A text of 5 million characters is read a window at a time."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """`version` comes without its text; `is_other` where the one that was asked for is gone."""

    document: Document
    version: Version
    is_other: bool = False

    @property
    def num_chars(self) -> int:
        """Of the text, where it was counted."""
        return int(getattr(self.version, "num_chars", 0))

    @property
    def path(self) -> Path:
        return document_files.path_of(self.version.pk)

    @property
    def media_type(self) -> str:
        """As it was read; before that as the document's is, or as its name says."""
        known = self.version.media_type or self.document.media_type
        return known or mimetypes.guess_type(self.document.name)[0] or ""

    @property
    def kind(self) -> str:
        """How it is shown: `pdf`, `image` or `text`."""
        if self.media_type == "application/pdf":
            return "pdf"
        return "image" if self.media_type.startswith("image/") else "text"


def view(
    user: Any, document_id: object, version_id: object = None, *, is_counted: bool = False
) -> Viewed:
    """The version that was asked for; without one, or if it is gone, what is found of the document, or
    its newest. `is_counted`: with `num_chars`, for which the database unpacks the text.

    Raises NotFound.
    """
    document = documents.document_for(user, document_id)
    rows = versions(document)
    if is_counted:
        rows = rows.annotate(num_chars=Length("text"))
    wanted = _as_uuid(version_id)
    version = rows.filter(pk=wanted).first() if wanted else None
    is_other = bool(version_id) and version is None
    if version is None and document.live_version is not None:
        version = rows.filter(pk=document.live_version).first()
    version = version or rows.first()
    if version is None:
        raise NotFound("version")
    return Viewed(document, version, is_other)


def page_url(document_id: UUID, width: int, number: int = 1) -> str:
    """Where a page is shown as a picture, so many pixels wide, to who may read the document."""
    return f"/api/documents/{document_id}/pages/{number}?width={width}"


def versions(document: Document) -> QuerySet[Version]:
    """The newest first, without what is large."""
    return Version.objects.filter(document=document).defer("text", "staged").order_by("-number")


def _as_uuid(value: object) -> UUID | None:
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


def text_between(version: Version, start: int, end: int) -> str:
    """Characters of its text, at most MAX_CHARS; nothing where there are none."""
    start = max(0, start)
    length = min(end - start, MAX_CHARS)
    if length <= 0:
        return ""
    rows = Version.objects.filter(pk=version.pk)
    piece = Substr(F("text"), Value(start + 1), Value(length))
    return str(rows.annotate(piece=piece).values_list("piece", flat=True).first() or "")


def facts(viewed: Viewed) -> dict[str, Any]:
    document, version = viewed.document, viewed.version
    return {
        "document": {
            "id": str(document.pk),
            "name": document.name,
            "kind": viewed.kind,
            "media_type": viewed.media_type,
            "collection": {"id": str(document.collection_id), "name": document.collection.name},
            "live_version": str(document.live_version) if document.live_version else None,
        },
        "version": {
            **version_value(version),
            "num_chars": viewed.num_chars,
            "pages": version.pages,
            "notes": version.notes,
        },
    }
