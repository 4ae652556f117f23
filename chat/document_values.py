"""Collections and documents as JSON values, see docs/api.md."""

from typing import Any

from chat.reading_words import reading_words
from chat.values import Value
from retrieval.models import Access, Document, Version


def collection_value(row: Any, user: Any) -> Value:
    """`row` as retrieval.collections.described gives it."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "description": row.description,
        "is_for_chats": row.is_for_chats,
        "caches_answers": row.caches_answers,
        "is_mine": row.owner_id == user.pk,
        "may_write": row.may_write,
        "owner": {"name": str(row.owner)},
        "num_documents": row.num_documents,
        "num_chunks": row.num_chunks,
        "version": row.version,
        "updated_at": row.updated_at.isoformat(),
    }


def document_value(row: Document) -> Value:
    """`row` as retrieval.documents.with_newest gives it."""
    newest: Version | None = next(iter(row.newest), None)  # type: ignore[attr-defined]
    return {
        "id": str(row.pk),
        "collection": str(row.collection_id),
        "name": row.name,
        "media_type": row.media_type,
        "tags": row.tags,
        "source_url": row.source_url,
        "created_at": row.created_at.isoformat(),
        "created_by": {"name": str(row.created_by)} if row.created_by else None,
        "size_bytes": newest.size_bytes if newest else 0,
        "live_version": str(row.live_version) if row.live_version else None,
        "version": version_value(newest) if newest else None,
    }


def version_value(row: Version) -> Value:
    return {
        "id": str(row.pk),
        "number": row.number,
        "state": row.state,
        "reason": reading_words(row.reason),
        "notes": [reading_words(note) for note in row.notes],
        "title": row.title,
        "size_bytes": row.size_bytes,
        "num_pages": len(row.pages),
        "num_chunks": row.num_chunks,
        "num_embedded": row.num_embedded,
        "created_at": row.created_at.isoformat(),
        "ready_at": row.ready_at.isoformat() if row.ready_at else None,
    }


def access_value(row: Access) -> Value:
    person, group = row.user, row.group
    return {
        "id": row.pk,
        "user": {"name": str(person), "email": person.email} if person else None,
        "group": {"id": group.pk, "name": group.name} if group else None,
        "may_write": row.may_write,
    }
