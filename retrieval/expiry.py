"""Collections that programs have made for a time: used again they stay, else their documents go."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from retrieval.dropping import drop
from retrieval.models import Collection, Document
from retrieval.system_rights import system_rights

# Right to a minute: a search is no reason to write a row each time, nor to wait for whoever has it, for
# seconds while passages are published. Such a collection is noted by the next search.
_USED = """
    UPDATE retrieval_collection SET last_active_at = now() WHERE id IN (
        SELECT id FROM retrieval_collection
        WHERE id = ANY(%s) AND last_active_at < now() - interval '1 minute'
            AND (expires_after_days IS NULL
                OR last_active_at + make_interval(days => expires_after_days) > now())
        FOR NO KEY UPDATE SKIP LOCKED
    )
"""


def expires_at(row: Collection) -> datetime | None:
    days = row.expires_after_days
    return None if days is None else row.last_active_at + timedelta(days=days)


def is_expired(row: Collection) -> bool:
    end = expires_at(row)
    return end is not None and end <= timezone.now()


def note_use(collection_ids: Iterable[UUID]) -> None:
    """Of whoever may read them: the time counts anew. Those that have expired stay so."""
    with system_rights(), connection.cursor() as cursor:
        cursor.execute(_USED, [list(collection_ids)])


def drop_expired() -> None:
    """The documents of expired collections, with their files. In the system's scope."""
    rows = Collection.objects.exclude(expires_after_days=None)
    expired = [row.pk for row in rows if is_expired(row)]
    for document in Document.objects.filter(collection__in=expired):
        drop(document)
