"""Files of documents as they come in: the body of a request straight to its place on disk."""

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.utils.translation import gettext

from chat.api_errors import ApiError
from chat.errors import BadRequest, TooLarge
from chat.ids import uuid7
from chat.request_bodies import pieces_of
from chat.rights import Rights
from retrieval import collections, document_files, documents, room
from retrieval.documents import Brought
from retrieval.egress import fetch
from retrieval.egress_network import Unfetchable
from retrieval.errors import NoRoom
from retrieval.models import Collection, Document
from retrieval.storable import storable

LINK_TIMEOUT_S = 60.0
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file goes: into a collection, or as the next version of a document."""

    collection_id: object = None
    document_id: object = None
    is_new: bool = False  # always a document of its own
    is_for_chats: bool = False  # the collection for files that are attached to messages


def upload(rights: Rights, request: HttpRequest, place: Place, name: str) -> Document:
    """All in one thread: a caller who goes leaves a file with its row, or neither.

    Raises RetrievalError, BadRequest, TooLarge, or ApiError where the tier has no files.
    """
    rights.require_files()
    # Before a gigabyte is on its way.
    most_bytes = _most_bytes(rights, place, name=documents.checked_name(name))
    version_id = uuid7()
    try:
        with _room_on_disk():
            size_bytes, sha256 = _store(request, version_id, rights, most_bytes)
        brought = Brought(version_id, name, size_bytes, sha256)
        return keep(rights.user, place, brought)
    except BaseException:
        document_files.remove(version_id)
        raise


def fetch_link(rights: Rights, place: Place, url: str) -> Document:
    """What an address serves becomes a document. All in one thread, for up to a minute.

    Raises as `upload` does, and ApiError for what cannot be had.
    """
    rights.require_files()
    # Not where it is in the end: many send on to an address that is signed for some minutes.
    given, _ = urldefrag(url.strip())
    most_bytes = _most_bytes(rights, place, source_url=given)
    version_id = uuid7()
    path = document_files.path_of(version_id)
    connection.close()  # back to the pool: a slow server holds none
    try:
        with _room_on_disk():
            found = fetch(url, path, max_bytes=most_bytes, timeout_s=LINK_TIMEOUT_S)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        brought = Brought(version_id, found.name, found.size_bytes, sha256, given, found.media_type)
        return keep(rights.user, place, brought)
    except Unfetchable as error:
        document_files.remove(version_id)
        if error.code == "too_large" and most_bytes < most_bytes_of(rights):
            raise NoRoom(settings.MAX_DOCUMENTS_BYTES) from None
        status = 413 if error.code == "too_large" else 400
        raise ApiError(status, error.code, error.message, "url") from None
    except BaseException:
        document_files.remove(version_id)
        raise


def keep(user: Any, place: Place, brought: Brought) -> Document:
    """The file lies in its place; its rows."""
    if place.document_id is not None:
        row, _ = documents.replace(user, place.document_id, brought)
    else:
        collection_id = _collection(user, place).pk
        row, _ = documents.bring(
            user, collection_id, brought, is_new=place.is_new, is_attached=place.is_for_chats
        )
    return documents.document_for(user, row.pk)


def _collection(user: Any, place: Place) -> Collection:
    if place.is_for_chats:
        return collections.for_chats(user)
    if place.document_id is not None:
        return documents.document_for(user, place.document_id, to_write=True).collection
    return collections.collection_for(user, place.collection_id, to_write=True)


def _most_bytes(rights: Rights, place: Place, *, name: str = "", source_url: str = "") -> int:
    """Raises NoRoom where nothing is left."""
    collection = _collection(rights.user, place)
    left = room.room_for(collection, _replaced(place, collection, name, source_url))
    if left <= 0:
        raise NoRoom(settings.MAX_DOCUMENTS_BYTES)
    return min(left, most_bytes_of(rights))


def _replaced(place: Place, collection: Collection, name: str, source_url: str) -> Document | None:
    """The document that a file becomes the next version of; its name is not known of every address."""
    rows = documents.documents_in(collection)
    if place.document_id is not None:
        return rows.filter(pk=collections.as_uuid(place.document_id, "document")).first()
    if place.is_new:
        return None
    rows = rows.filter(source_url=storable(source_url))
    return (rows.filter(name=name) if name else rows).first()


def most_bytes_of(rights: Rights) -> int:
    """What the tier takes as one file, and what is read of one at all."""
    most = documents.max_file_bytes()
    mib = rights.user.tier.upload_mib
    return most if mib is None else min(most, mib * MIB)


@contextmanager
def _room_on_disk() -> Iterator[None]:
    """Raises ApiError where the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        text = gettext("The server has no room for this file.")
        raise ApiError(507, "storage_full", text) from None


def _store(
    request: HttpRequest, version_id: UUID, rights: Rights, most_bytes: int
) -> tuple[int, str]:
    """Its size and SHA-256. Raises TooLarge, BadRequest, NoRoom where others take what it would fill."""
    digest = hashlib.sha256()
    with document_files.path_of(version_id).open("xb") as file:
        try:
            for piece in pieces_of(request, most_bytes):
                digest.update(piece)
                file.write(piece)
        except TooLarge:
            if most_bytes < most_bytes_of(rights):
                raise NoRoom(settings.MAX_DOCUMENTS_BYTES) from None
            raise
        size_bytes = file.tell()
        document_files.make_safe(file)
    if not size_bytes:
        raise BadRequest(gettext("The file is empty."))
    return size_bytes, digest.hexdigest()
