"""How much more may be brought: bytes of one owner, documents of one collection. Synchronous, in the
user's scope."""

from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet, Sum

from retrieval import document_files
from retrieval.errors import NoRoom, TooMany
from retrieval.models import UNFINISHED, Collection, Document, Version
from retrieval.system_rights import system_rights

MAX_DOCUMENTS = 100_000  # of one collection
_BRINGING = 0x62726E67  # the class of its locks


def hold_place(owner_id: int) -> None:
    """Until the end of the transaction nobody else brings anything to this owner: names and room are
    looked at by one at a time. No lock of the row: who may write may not change that."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_BRINGING, owner_id])


def room_of(owner_id: int) -> int:
    """Bytes that the owner has left."""
    # Who may write in one collection sees nothing of the owner's others, which count as well.
    with system_rights():
        used = _num_bytes(Version.objects.filter(collection__owner_id=owner_id))
    return max(0, settings.MAX_DOCUMENTS_BYTES - used)


def room_for(collection: Collection, replaced: Document | None = None) -> int:
    """Bytes that may still be brought to it; as the next version of a document also what its old ones
    give up, and the newest once more, for it may be the same file."""
    room = room_of(collection.owner_id)
    if replaced is None:
        return room
    sizes = Version.objects.filter(document=replaced).order_by("-number").values_list("size_bytes")
    newest = sizes.first() or (0,)
    return max(room + _num_bytes(_old_of(replaced)), newest[0])


def check_number(collection: Collection, num: int = 1) -> None:
    """Of new documents. Raises TooMany."""
    if Document.objects.filter(collection=collection).count() + num > MAX_DOCUMENTS:
        raise TooMany(MAX_DOCUMENTS)


def check_bytes(collection: Collection, size_bytes: int) -> None:
    """Raises NoRoom."""
    if size_bytes > room_of(collection.owner_id):
        raise NoRoom(settings.MAX_DOCUMENTS_BYTES)


def make_room(collection: Collection, document: Document, size_bytes: int) -> None:
    """For a next version: where there is none, old ones of the document go, the oldest first. In a
    transaction. Raises NoRoom, and then nothing goes."""
    missing = size_bytes - room_of(collection.owner_id)
    for version in _old_of(document).order_by("number") if missing > 0 else ():
        if missing > 0:
            Version.objects.filter(pk=version.pk).delete()
            transaction.on_commit(partial(document_files.remove, version.pk))
            missing -= version.size_bytes
    if missing > 0:
        raise NoRoom(settings.MAX_DOCUMENTS_BYTES)


def _old_of(document: Document) -> "QuerySet[Version]":
    """Neither found nor on their way, and they never will be."""
    live = Document.objects.filter(pk=document.pk).exclude(live_version=None)
    rows = Version.objects.filter(document=document).exclude(state__in=UNFINISHED)
    return rows.exclude(pk__in=live.values("live_version")).defer("text", "staged")


def _num_bytes(versions: Any) -> int:
    return int(versions.aggregate(used=Sum("size_bytes"))["used"] or 0)
