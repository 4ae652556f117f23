"""Searching a vector store: passages that fit a query, or one of several, with scores from 0 to 1."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chat.db import in_db
from chat.document_search import find
from chat.responses_schemas import FileSearchIn
from chat.rights import Rights
from chat.storable import storable
from chat.values import Value
from chat.vector_store_files import public_file_id
from chat.vector_store_schemas import VectorStoreSearchIn
from chat.vector_stores import find as find_store
from chat.vector_stores import refuse_expired
from inference import Caller
from retrieval import expiry
from retrieval.attributes import matching
from retrieval.models import Collection
from retrieval.scopes import SearchScope
from retrieval.searching import Candidate, passages


async def search_store(rights: Rights, store_id: str, data: VectorStoreSearchIn) -> Value:
    """Raises ApiError."""
    user = rights.user
    scope = await in_db(_scope)(user, store_id, data)
    caller = Caller(str(user.pk), user.tier.weight, rights.priority)
    queries = [storable(query) for query in data.queries]
    scores: dict[int, float] = {}
    for query in queries:
        found = (await find(caller, query, scope)).candidates
        for id_, score in scored(found).items():
            scores[id_] = max(score, scores.get(id_, 0.0))
    least = data.ranking_options.score_threshold if data.ranking_options else 0.0
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": await in_db(_hits)(scores, least, data.max_num_results),
        "has_more": False,
        "next_page": None,
    }


def stores_to_search(
    user: Any, asked: FileSearchIn
) -> tuple[tuple[UUID, ...], tuple[UUID, ...] | None]:
    """The stores that a model may search, and where they are filtered the documents. Raises ApiError."""
    stores = _opened(user, asked.vector_store_ids)
    ids = tuple(store.pk for store in stores)
    if asked.filters is None:
        return ids, None
    wanted = asked.filters.wanted()
    found = [
        id_ for store in stores for id_ in matching(store, wanted).values_list("pk", flat=True)
    ]
    return ids, tuple(found)


def scored(candidates: Sequence[Candidate]) -> dict[int, float]:
    """From 0 to 1, in the order in which they were found. That of the best one says how well it fits by
    itself (how many of the words, how near); others are as far below as their ranking has them."""
    if not candidates:
        return {}
    best = candidates[0]
    parts = [best.coverage] if best.cosine is None else [best.coverage, max(0.0, best.cosine)]
    fit = min(1.0, sum(parts) / len(parts))
    most = max(best.score, 1e-9)
    return {one.chunk_id: fit * max(0.0, one.score) / most for one in candidates}


def _opened(user: Any, store_ids: Sequence[str]) -> list[Collection]:
    """Each once, and used now. Raises ApiError."""
    stores = [find_store(user, id_) for id_ in dict.fromkeys(store_ids)]
    for store in stores:
        refuse_expired(store)
    expiry.note_use([store.pk for store in stores])
    return stores


def _scope(user: Any, store_id: str, data: VectorStoreSearchIn) -> SearchScope:
    [store] = _opened(user, [store_id])
    if data.filters is None:
        return SearchScope(collections=[store.pk])
    rows = matching(store, data.filters.wanted())
    return SearchScope(documents=list(rows.values_list("pk", flat=True)))


def _hits(scores: dict[int, float], least: float, most: int) -> list[Value]:
    """Looked up as the user: what may not be read any more is left out."""
    good = {id_: score for id_, score in scores.items() if score >= least}
    best = sorted(good, key=lambda id_: (-good[id_], id_))[:most]
    return [
        {
            "file_id": public_file_id(row.document),
            "filename": row.document.name,
            "score": round(good[row.pk], 6),
            "attributes": row.document.attributes,
            "content": [{"type": "text", "text": row.text}],
        }
        for row in passages(best)
    ]
