"""Chats in which words find nothing, and which are about the same all the same: by vectors of messages.

They come behind all that words have found. Scores of both are not added as for passages: words find in
windows of time, and what is in two of them has no score in common. A person's own vectors are compared
one by one, which is exact: 20,000 of them take some 30 ms, 100,000 a quarter of a second (on one core of
a Xeon), and where it would take longer than COMPARE_MS, words alone answer.
"""

import asyncio
import logging
from typing import Any

from django.conf import settings
from django.db import connection
from pgvector import HalfVector

from chat.db import in_db
from chat.embedder import embed
from chat.engine import engine
from chat.errors import SearchTooSlow
from chat.models import MessageVector
from chat.search import Hit, looking_for
from chat.search_query import SearchQuery
from chat.search_sql import filters_of, near_sql
from inference import Caller, EngineError
from retrieval.embedding import Embedded
from retrieval.models import EmbeddingModel
from retrieval.searching import Meaning

logger = logging.getLogger(__name__)

MIN_COSINE = 0.4
"""By the built-in model: of 26 queries without a sense none finds anything, of 30 about what nobody has
talked of one does, and 92 % of XQuAD's questions find their passage; 17 % find one of another article,
at 0.35 it would be 38 % (`python -m benchmarks.retrieval recall`)."""

NUM_HITS = 20
EMBED_S, COMPARE_MS = (
    0.4,
    500,
)  # together less than a second, whatever happens; then words alone answer


async def search(user: Any, query: SearchQuery, caller: Caller) -> list[Hit]:
    """The best first, each chat once. Empty where the model is not ready, which is then begun.

    In the scope of the user, whose rights the database asks.
    """
    if not (settings.CHAT_MEANING and _asks_for_meaning(query)):
        return []
    if not await in_db(_has_vectors)(user):
        return []
    meaning = await _meaning_of(" ".join(unit.text for unit in query.units), caller)
    return [] if meaning is None else await in_db(_near)(user, query, meaning)


def _asks_for_meaning(query: SearchQuery) -> bool:
    """Who asks for a phrase, or to do without a word, asks for words."""
    return bool(query.units) and not any(u.is_exact or u.is_unwanted for u in query.units)


def _has_vectors(user: Any) -> bool:
    return MessageVector.objects.filter(owner_id=user.pk, model__isnull=False).exists()


async def _meaning_of(text: str, caller: Caller) -> Meaning | None:
    model = settings.EMBEDDING_MODEL
    try:
        state = engine().state(model).state
        if state == "ready":
            async with asyncio.timeout(EMBED_S):
                embedded = await embed(model, [text], "query", caller)
            return await in_db(_meaning)(embedded)
        # Nobody waits for it, and no other model has to leave memory for what is typed here.
        if state in ("cold", "asleep") and await engine().has_room(model):
            engine().load(model)
    except (EngineError, TimeoutError) as error:
        logger.warning("chats are searched by words alone: %s", error or "the engine is busy")
    return None


def _meaning(embedded: Embedded) -> Meaning | None:
    """None while no vectors are of this very model."""
    rows = EmbeddingModel.objects.filter(name=embedded.model, revision=embedded.revision)
    row = rows.filter(dimensions=len(embedded.vectors[0])).first()
    return Meaning(row, embedded.vectors[0], embedded.known_shares[0]) if row else None


def _near(user: Any, query: SearchQuery, meaning: Meaning) -> list[Hit]:
    names = filters_of(query) | {
        "owner": user.pk,
        "model": meaning.model.pk,
        "vector": HalfVector(list(meaning.vector)).to_text(),
        "min_cosine": MIN_COSINE,
        "limit": NUM_HITS,
    }
    try:
        with looking_for(query.units, COMPARE_MS) as can_match, connection.cursor() as cursor:
            if not can_match:
                return []
            cursor.execute(near_sql(query), names)
            return [Hit(*row) for row in cursor.fetchall()]
    except SearchTooSlow:
        logger.warning("the messages of user %s are too many to be compared in time", user.pk)
        return []
