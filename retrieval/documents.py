"""Documents: brought, replaced, renamed, tried again and deleted. Synchronous, in the user's scope.

A file lies in its place before its row is there (document_files.py); whoever brings it removes it again
when the row is refused.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from redis import RedisError

from retrieval import document_files, expiry, room
from retrieval.collections import as_uuid, collection_for, may_write_in
from retrieval.dropping import drop
from retrieval.errors import BadValue, Conflict, NotAllowed, NotFound
from retrieval.file_names import composed, seen
from retrieval.models import UNFINISHED, Collection, Document, Version, VersionState
from retrieval.parsing import Limits
from retrieval.storable import is_storable, storable
from retrieval.system_rights import system_rights

MAX_NAME_CHARS = 255
FOLDER = " › "  # in a name, behind the folder that a file was in
MAX_TAGS = 20
_KEEP_PLACE_S = 86_400
_HOLD = "SELECT owner_id FROM retrieval_collection WHERE id = %s FOR KEY SHARE"
MAX_TAG_CHARS = 50


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that lies at document_files.path_of(version_id). `name` is what its owner calls it.
    `has_words`: it is to be read, and found by what it says."""

    version_id: UUID
    name: str
    size_bytes: int
    sha256: str = ""
    source_url: str = ""
    media_type: str = ""
    has_words: bool = True


def documents_for(user: Any) -> "QuerySet[Document]":
    """All that the user may read, those brought last first."""
    return Document.objects.order_by("-created_at", "-pk")


def documents_in(collection: Collection) -> "QuerySet[Document]":
    """Those brought last first."""
    return Document.objects.filter(collection=collection).order_by("-created_at", "-pk")


def behind(rows: "QuerySet[Document]", last_id: UUID) -> "QuerySet[Document]":
    """The rest of documents_in, behind the last one of a page, which may be gone by now: newer ones have
    greater ids."""
    return rows.filter(pk__lt=last_id)


def unfinished_in(collection: Collection, known: Sequence[str] = ()) -> "QuerySet[Document]":
    """Documents with a version on its way, and those that are named."""
    waiting = Version.objects.filter(document=OuterRef("pk"), state__in=UNFINISHED)
    return documents_in(collection).filter(Q(Exists(waiting)) | Q(pk__in=list(known)))


def called(rows: "QuerySet[Document]", part: str) -> "QuerySet[Document]":
    """Those with it in their names; as it is given too, for older names are as they were given."""
    if not is_storable(part):
        return rows.none()
    return rows.filter(Q(name__icontains=composed(part)) | Q(name__icontains=part))


def with_newest(rows: "QuerySet[Document]") -> "QuerySet[Document]":
    """Each with `newest`, a list of its newest version, without the text of it; one query more."""
    versions = Version.objects.defer("text", "staged").order_by("document", "-number")
    newest = Prefetch("versions", queryset=versions.distinct("document"), to_attr="newest")
    return rows.select_related("created_by").prefetch_related(newest)


def document_for(user: Any, document_id: object, *, to_write: bool = False) -> Document:
    """With its collection. Raises NotFound, and NotAllowed for one that may only be read."""
    rows = with_newest(Document.objects.select_related("collection"))
    row = rows.filter(pk=as_uuid(document_id, "document")).first()
    if row is None:
        raise NotFound("document")
    if to_write and not may_write_in(user, row.collection_id):
        raise NotAllowed(gettext("You may read this document, and not change it."))
    return row


def version_for(document: Document, version_id: object = None) -> Version:
    """A version with its text: of this id, or the one that is found, or the newest. Raises NotFound."""
    rows = Version.objects.filter(document=document)
    if version_id is not None:
        row = rows.filter(pk=as_uuid(version_id, "version")).first()
    elif document.live_version is not None:
        row = rows.filter(pk=document.live_version).first()
    else:
        row = rows.order_by("-number").first()
    if row is None:
        raise NotFound("version")
    return row


def max_file_bytes() -> int:
    """What is read of one file at all."""
    return Limits().max_file_bytes


# --- bringing -------------------------------------------------------------------------------------


def bring(
    user: Any,
    collection_id: object,
    brought: Brought,
    *,
    is_new: bool = False,
    is_attached: bool = False,
) -> tuple[Document, Version]:
    """A file becomes a document, or the next version of the one that has its name in the collection, and
    came from the same address: many sites call a page index.html.

    `is_new`: always a document of its own. `is_attached`: to a message. Raises NotFound, NotAllowed,
    NoRoom, TooMany, BadValue, and Conflict where it would be gone with what has expired.
    """
    name = checked_name(brought.name)
    with transaction.atomic():
        # The lock: of two files of one name the second is the next version of the first.
        collection = collection_for(user, collection_id, to_write=True)
        _hold_collection(collection)
        _refuse_expired(collection)
        document = None
        if not is_new:
            rows = Document.objects.filter(collection=collection, name=name)
            document = rows.filter(source_url=storable(brought.source_url)).first()
        if document is None:
            room.check_number(collection)
            document = _add(user, collection, name, brought, is_attached)
        return document, _add_version(document, collection, brought)


def bring_all(
    user: Any, collection_id: object, brought: Sequence[Brought]
) -> list[tuple[Document, Version]]:
    """Each file becomes a document of its own, all of them or none; a few statements, however many.

    Raises as `bring` does.
    """
    names = [checked_name(one.name) for one in brought]
    with transaction.atomic():
        collection = collection_for(user, collection_id, to_write=True)
        _hold_collection(collection)
        _refuse_expired(collection)
        room.check_number(collection, len(brought))
        room.check_bytes(collection, sum(one.size_bytes for one in brought))
        rows = [
            _document(user, collection, name, one) for name, one in zip(names, brought, strict=True)
        ]
        added = Document.objects.bulk_create(rows, batch_size=500)
        versions = [_version(*pair) for pair in zip(added, brought, strict=True)]
        return list(zip(added, Version.objects.bulk_create(versions, batch_size=500), strict=True))


def replace(user: Any, document_id: object, brought: Brought) -> tuple[Document, Version]:
    """The next version of a document. Raises NotFound, NotAllowed, NoRoom, Conflict."""
    with transaction.atomic():
        document = document_for(user, document_id, to_write=True)
        _hold_collection(document.collection)
        if not Document.objects.select_for_update().filter(pk=document.pk):
            raise NotFound("document")
        _refuse_expired(document.collection)
        return document, _add_version(document, document.collection, brought)


def _hold_collection(collection: Collection) -> None:
    """The same, and nobody deletes the collection or hands it over. Raises NotFound where it is gone."""
    # First of all, as whoever deletes it does.
    with system_rights(), connection.cursor() as cursor:
        cursor.execute(_HOLD, [collection.pk])
        held = cursor.fetchone()
        if held is None:
            raise NotFound("collection")
    collection.owner_id = held[0]  # it may have been handed over since it was looked up
    room.hold_place(collection.owner_id)


def _refuse_expired(collection: Collection) -> None:
    if expiry.is_expired(collection):
        text = gettext("This collection has expired, and its documents are gone. Make a new one.")
        raise Conflict(text)


def _add(
    user: Any, collection: Collection, name: str, brought: Brought, is_attached: bool
) -> Document:
    row = _document(user, collection, name, brought)
    row.is_attached = is_attached
    row.save(force_insert=True)
    return row


def _document(user: Any, collection: Collection, name: str, brought: Brought) -> Document:
    return Document(
        collection=collection,
        name=name,
        source_url=storable(brought.source_url),
        media_type=storable(brought.media_type)[:100],
        created_by_id=user.pk,
    )


def _add_version(document: Document, collection: Collection, brought: Brought) -> Version:
    """The same file again is no new version, unless it could not be read. Raises NoRoom."""
    last = document.versions.order_by("-number").first()
    is_same = last is not None and brought.sha256 and last.sha256 == brought.sha256
    if last is not None and is_same and last.state != VersionState.FAILED:
        transaction.on_commit(partial(document_files.remove, brought.version_id))
        return last
    room.make_room(collection, document, brought.size_bytes)
    row = _version(document, brought, last.number + 1 if last else 1)
    row.save(force_insert=True)
    return row


def _version(document: Document, brought: Brought, number: int = 1) -> Version:
    now = timezone.now()
    return Version(
        id=brought.version_id,
        document=document,
        collection_id=document.collection_id,
        number=number,
        sha256=brought.sha256,
        size_bytes=brought.size_bytes,
        state=VersionState.QUEUED if brought.has_words else VersionState.READY,
        ready_at=None if brought.has_words else now,
        lease_until=now - timedelta(seconds=1),
    )


# --- changing -------------------------------------------------------------------------------------


def change(
    user: Any, document_id: object, *, name: str | None = None, tags: Sequence[str] | None = None
) -> Document:
    """Raises NotFound, NotAllowed, BadValue."""
    row = document_for(user, document_id, to_write=True)
    # Only what was given: who changes the rest meanwhile keeps that.
    changes: dict[str, Any] = {}
    if name is not None:
        changes["name"] = checked_name(name)
    if tags is not None:
        changes["tags"] = checked_tags(tags)
    if changes and not Document.objects.filter(pk=row.pk).update(**changes):
        raise NotFound("document")
    return document_for(user, row.pk)


def try_again(user: Any, document_id: object) -> Document:
    """Read the newest version once more, which has failed. Raises NotFound, NotAllowed, Conflict."""
    row = document_for(user, document_id, to_write=True)
    newest = row.versions.order_by("-number").values("pk")[:1]
    failed = Version.objects.filter(pk__in=newest, state=VersionState.FAILED)
    now = timezone.now() - timedelta(seconds=1)
    if not failed.update(
        state=VersionState.QUEUED, reason="", lease_owner="", lease_until=now, attempts=0
    ):
        raise Conflict(gettext("The document has not failed."))
    return document_for(user, document_id)


def delete(user: Any, document_id: object) -> None:
    """With its files, and all that was found in it. Raises NotFound, NotAllowed."""
    row = document_for(user, document_id, to_write=True)
    drop(row)
    with suppress(RedisError):  # then a list on behind it begins anew
        cache.set(_place_key(row.collection_id, row.file_id or row.pk), str(row.pk), _KEEP_PLACE_S)


def place_of_deleted(collection_id: UUID, file_id: UUID) -> UUID | None:
    """The id of a document that was deleted from the collection, for whoever knows it by its file and
    reads a list on behind it."""
    with suppress(RedisError):
        found = cache.get(_place_key(collection_id, file_id))
        return UUID(found) if found else None
    return None


def _place_key(collection_id: UUID, file_id: UUID) -> str:
    return f"deleted-document:{collection_id}:{file_id}"


def checked_name(name: str) -> str:
    """The last part of a path, without what no name holds. Raises BadValue."""
    if not is_storable(name):
        raise BadValue(gettext("The name holds a character that cannot be kept."), "name")
    last = " ".join(name.replace("\\", "/").rsplit("/", 1)[-1].split())
    name = composed(seen(last)).strip()
    if not name or name in (".", ".."):
        raise BadValue(gettext("A document needs a name."), "name")
    return name if len(name) <= MAX_NAME_CHARS else _shortened(name)


def _shortened(name: str) -> str:
    """The ending tells the kind of the file, and stays. Of folders in front of it the first ones go: by
    what is left of the others its neighbours would all have the same name, and be versions of it."""
    if FOLDER in name:
        return "…" + name[1 - MAX_NAME_CHARS :]
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 10:
        return name[:MAX_NAME_CHARS]
    return stem[: MAX_NAME_CHARS - len(ending) - 1] + dot + ending


def checked_tags(tags: Sequence[str]) -> list[str]:
    """Each once, in order. Raises BadValue."""
    found = list(dict.fromkeys(tag for given in tags if (tag := " ".join(composed(given).split()))))
    if len(found) > MAX_TAGS:
        raise BadValue(gettext("A document has at most %(n)s tags.") % {"n": MAX_TAGS}, "tags")
    if any(len(tag) > MAX_TAG_CHARS or not is_storable(tag) for tag in found):
        text = gettext("A tag is longer than %(n)s characters, or holds one that cannot be kept.")
        raise BadValue(text % {"n": MAX_TAG_CHARS}, "tags")
    return found
