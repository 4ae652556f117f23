"""Pages of documents: collections, what is in one, and a document with its passage marked."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render

from chat import document_view
from chat.db import in_db
from chat.document_view import Viewed
from chat.reading_words import reading_words
from chat.rights import rights_of
from retrieval.collections import collection_for, may_write_in
from retrieval.errors import NotFound
from retrieval.models import UNFINISHED
from retrieval.sharing import may_be_shared

NUM_VERSIONS_SHOWN = 50


async def show_document(request: HttpRequest, document_id: UUID) -> HttpResponse:
    """A document (?version=...), and the passage of it that the address names (?start=...&end=...).
    One that may not be read is as missing as one that never was."""
    try:
        context = await in_db(_document)(request, document_id)
    except NotFound:
        raise Http404 from None
    return _page(request, "documents/document.html", context)


def _document(request: HttpRequest, document_id: UUID) -> dict[str, Any]:
    wanted = request.GET.get("version", "")
    viewed = document_view.view(request.user, document_id, wanted, is_counted=True)
    version = viewed.version
    return {
        "viewed": viewed,
        "document": viewed.document,
        "version": version,
        "reason": reading_words(version.reason),
        "notes": [reading_words(note) for note in version.notes],
        "versions": list(document_view.versions(viewed.document)[:NUM_VERSIONS_SHOWN]),
        "is_unfinished": version.state in UNFINISHED,
        "is_superseded": viewed.document.live_version not in (None, version.pk),
        "has_words": viewed.num_chars > 0,
        "may_write": _may_add(request, viewed.document.collection_id),
        "bootstrap": {**document_view.facts(viewed), "passage": _passage(request, viewed)},
    }


def _passage(request: HttpRequest, viewed: Viewed) -> dict[str, int] | None:
    """The characters to be marked; None where the address names none that there are."""
    start, end = (request.GET.get(name, "") for name in ("start", "end"))
    if viewed.is_other or not (_is_number(start) and _is_number(end)):
        return None
    first, last = int(start), min(int(end), viewed.num_chars)
    return {"start": first, "end": last} if first < last else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


async def show_collections(request: HttpRequest) -> HttpResponse:
    """The collections that somebody may read; the page asks for them itself."""
    context = {
        "may_create": rights_of(request).may_keep_files,
        "bootstrap": {"csrf": get_token(request), "may_create": rights_of(request).may_keep_files},
    }
    return _page(request, "documents/collections.html", context)


async def show_collection(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """A collection; its documents come over REST. Somebody else's is as missing as none."""
    try:
        context = await in_db(_collection)(request, collection_id)
    except NotFound:
        raise Http404 from None
    return _page(request, "documents/collection.html", context)


def _collection(request: HttpRequest, collection_id: UUID) -> dict[str, Any]:
    row = collection_for(request.user, collection_id)
    facts = {
        "is_mine": row.owner_id == request.user.pk,
        "may_write": _may_add(request, row.pk),
        "may_be_shared": may_be_shared(row),
    }
    value = {"id": str(row.pk), "name": row.name, "description": row.description, **facts}
    return {
        "collection": row,
        **facts,
        "bootstrap": {"csrf": get_token(request), "collection": value},
    }


def _may_add(request: HttpRequest, collection_id: UUID) -> bool:
    """Both the collection and the tier let one."""
    return rights_of(request).may_keep_files and may_write_in(request.user, collection_id)


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    response = render(request, template, context)
    response["Cache-Control"] = "private, no-store"
    return response
