"""Collections of documents: made, found, renamed and deleted. Synchronous.

In the scope of the user: rows that may not be read are not there (migration `protection`).
"""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext

from retrieval import document_files
from retrieval.errors import BadValue, NotAllowed, NotFound, TooMany
from retrieval.file_names import composed
from retrieval.models import Access, Collection, Document, Version
from retrieval.storable import is_storable

MAX_COLLECTIONS = 1000  # of one person
MAX_NAME_CHARS = 120
MAX_DESCRIPTION_CHARS = 2000


def collections_for(user: Any) -> "QuerySet[Collection]":
    """All that the user may read, those that changed last first."""
    return Collection.objects.select_related("owner").order_by("-updated_at", "-pk")


def writable(user: Any) -> Q:
    """What of them the user may also change."""
    accesses = Access.objects.filter(collection=OuterRef("pk"), may_write=True)
    return Q(owner_id=user.pk) | Q(Exists(accesses))


def may_write_in(user: Any, collection_id: UUID) -> bool:
    return Collection.objects.filter(writable(user), pk=collection_id).exists()


def described(user: Any) -> "QuerySet[Any]":
    """All that the user may read, each with `may_write` and `num_documents`."""
    # A query for each row's documents: joined, they would be grouped by every column.
    documents = Document.objects.filter(collection=OuterRef("pk")).order_by()
    counts = documents.values("collection").annotate(num=Count("pk")).values("num")
    return collections_for(user).annotate(
        may_write=writable(user), num_documents=Coalesce(Subquery(counts), 0)
    )


def collection_for(user: Any, collection_id: object, *, to_write: bool = False) -> Collection:
    """Raises NotFound, and NotAllowed for one that may only be read."""
    rows = collections_for(user)
    row = rows.filter(pk=as_uuid(collection_id, "collection")).first()
    if row is None:
        raise NotFound("collection")
    if to_write and not may_write_in(user, row.pk):
        raise NotAllowed(gettext("You may read this collection, and not change it."))
    return row


def own_collection_for(user: Any, collection_id: object) -> Collection:
    """Raises NotFound, and NotAllowed where it is somebody else's."""
    row = collection_for(user, collection_id)
    if row.owner_id != user.pk:
        raise NotAllowed(gettext("Only the owner of this collection may do that."))
    return row


def create(user: Any, name: str, description: str = "", caches_answers: bool = False) -> Collection:
    """Raises BadValue, TooMany."""
    row = Collection(owner_id=user.pk, name=checked_name(name), caches_answers=caches_answers)
    row.description = _checked_description(description)
    if Collection.objects.filter(owner_id=user.pk).count() >= MAX_COLLECTIONS:
        raise TooMany(MAX_COLLECTIONS)
    row.save(force_insert=True)
    return row


def for_chats(user: Any) -> Collection:
    """Where files that the user attaches to messages go; made at the first."""
    row, _ = Collection.objects.get_or_create(
        owner_id=user.pk, is_for_chats=True, defaults={"name": gettext("Files of chats")}
    )
    return row


def change(
    user: Any,
    collection_id: object,
    *,
    name: str | None = None,
    description: str | None = None,
    caches_answers: bool | None = None,
) -> Collection:
    """Raises NotFound, NotAllowed, BadValue."""
    row = own_collection_for(user, collection_id)
    changes: dict[str, Any] = {}
    if name is not None:
        changes["name"] = checked_name(name)
    if description is not None:
        changes["description"] = _checked_description(description)
    if caches_answers is not None:
        changes["caches_answers"] = caches_answers
    return write(row, **changes)


def write(row: Collection, **changes: Any) -> Collection:
    """Only these: who changes something else meanwhile keeps that. Raises NotFound where it is gone."""
    changes["updated_at"] = timezone.now()
    if not Collection.objects.filter(pk=row.pk).update(**changes):
        raise NotFound("collection")
    for name, value in changes.items():
        setattr(row, name, value)
    return row


def delete(user: Any, collection_id: object) -> None:
    """With its documents, their files, and all that was found in them. Raises NotFound, NotAllowed."""
    row = own_collection_for(user, collection_id)
    with transaction.atomic():
        # First of all, as whoever publishes does: in another order each would wait for the other.
        if not Collection.objects.select_for_update().filter(pk=row.pk, owner_id=user.pk):
            raise NotFound("collection")  # gone, or handed over since
        versions = list(Version.objects.filter(collection=row).values_list("pk", flat=True))
        row.delete()
    for version_id in versions:
        document_files.remove(version_id)


def checked_name(name: str) -> str:
    """Raises BadValue."""
    name = " ".join(composed(name).split())
    if not name:
        raise BadValue(gettext("A collection needs a name."), "name")
    if len(name) > MAX_NAME_CHARS or not is_storable(name):
        text = gettext(
            "The name is longer than %(n)s characters, or holds one that cannot be kept."
        )
        raise BadValue(text % {"n": MAX_NAME_CHARS}, "name")
    return name


def _checked_description(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_DESCRIPTION_CHARS or not is_storable(text):
        problem = gettext(
            "The description is longer than %(n)s characters, or holds one that cannot be kept."
        )
        raise BadValue(problem % {"n": MAX_DESCRIPTION_CHARS}, "description")
    return text


def as_uuid(value: object, what: str) -> UUID:
    """An id from outside. Nonsense is as missing as an unknown id. Raises NotFound."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise NotFound(what) from None
