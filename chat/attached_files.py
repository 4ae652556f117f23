"""Files that were attached to messages: they go with the last message that names them.

A message names them in its `sources`; edits, branches and whoever picks one for another question name
it too. One that was never sent waits in somebody's composer, for a while.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from chat.access import seeing_deleted
from chat.models import Message
from chat.sources import picked_of
from retrieval.dropping import drop
from retrieval.models import Document
from retrieval.system_rights import system_rights

# Once for all of them: messages with sources are few, and have an index of their own.
_UNNAMED = """
    SELECT d.id FROM retrieval_document d
    WHERE d.is_attached AND d.{condition} AND NOT EXISTS (
        SELECT FROM (
            SELECT named->>'id' AS id
            FROM chat_message, jsonb_array_elements(sources->'documents') AS named
            WHERE sources IS NOT NULL
        ) AS kept WHERE kept.id = d.id::text)
"""


def named_by(rows: "QuerySet[Message, Any]") -> set[UUID]:
    """Documents that these messages name."""
    values = rows.exclude(sources=None).values_list("sources", flat=True)
    return {id_ for value in values for id_ in picked_of(value).documents}


def drop_unnamed(document_ids: Iterable[UUID]) -> None:
    """Of these, what was attached and no message names any more. Call it when who named it is gone."""
    if ids := list(document_ids):
        _drop("id = ANY(%s)", ids)


def drop_unsent(before: datetime) -> None:
    """What was attached before, and no message names. In the system's scope."""
    _drop("created_at < %s", before)


def _drop(condition: str, value: datetime | list[UUID]) -> None:
    # Those of others may name it as well, and those that can still be brought back.
    with seeing_deleted(), system_rights(), connection.cursor() as cursor:
        cursor.execute(_UNNAMED.format(condition=condition), [value])
        unnamed = [row[0] for row in cursor.fetchall()]
    for document in Document.objects.filter(pk__in=unnamed):
        drop(document)
