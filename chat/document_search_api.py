"""REST of the search in documents, /api/documents/search."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from chat.db import in_db
from chat.document_search import find
from chat.rights import rights_of
from chat.storable import storable
from chat.values import Value
from inference import Caller
from retrieval.scopes import SearchScope
from retrieval.searching import Candidate, passages

router = Router()


class DocumentSearch(Schema):
    """Left out, `collections` and `documents` are all that you may read."""

    query: Annotated[str, Field(min_length=1, max_length=10_000)]
    collections: list[UUID] | None = None
    documents: list[UUID] | None = None
    tags: list[str] = []
    media_types: list[str] = []
    after: datetime | None = None
    before: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


@router.post("/search")
async def search_documents(request: HttpRequest, data: DocumentSearch) -> dict[str, Any]:
    """The passages that fit a question best, by words and by meaning."""
    scope = SearchScope(
        collections=data.collections,
        documents=data.documents,
        tags=[storable(tag) for tag in data.tags],
        media_types=[storable(kind) for kind in data.media_types],
        after=data.after,
        before=data.before,
    )
    rights = rights_of(request)
    caller = Caller(str(rights.user.pk), rights.user.tier.weight, rights.priority)
    found = await find(caller, storable(data.query), scope)
    return {"hits": await in_db(_hits)(found.candidates[: data.limit])}


def _hits(candidates: list[Candidate]) -> list[Value]:
    by_id = {one.chunk_id: one for one in candidates}
    rows = passages(list(by_id))
    return [
        {
            "document": str(row.document_id),
            "version": str(row.version_id),
            "collection": str(row.collection_id),
            "name": row.document.name,
            "start": row.start,
            "end": row.end,
            "first_page": row.first_page,
            "last_page": row.last_page,
            "context": row.context,
            "text": row.text,
            "score": round(by_id[row.pk].score, 4),
            "lexical_rank": by_id[row.pk].lexical_rank,
            "vector_rank": by_id[row.pk].vector_rank,
        }
        for row in rows
    ]
