"""Passages by their meaning: those whose vectors are nearest.

Vectors of all models lie in one table; each model has an index of its own, over its rows alone. Few
vectors are compared one by one, which is exact and for some thousands also faster; many are found by
the index, which goes on until enough of what it finds may be seen (pgvector's iterative scans), so that
a filter never leaves fewer passages than there are. Vectors that are too long for an index are compared
one by one, however many they are.
"""

from array import array
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from pgvector import HalfVector

from retrieval.models import EmbeddingModel
from retrieval.scopes import SearchScope

MAX_EXACT = 20_000  # vectors that are compared one by one
MAX_INDEXED_DIMENSIONS = 4_000  # of pgvector's HNSW over halfvec
EF_SEARCH = 200
MAX_SCAN_TUPLES = 200_000

_COUNT = """
    SELECT coalesce(sum(num_chunks), 0) FROM retrieval_collection c
    WHERE (%(collections)s::uuid[] IS NULL AND %(documents)s::uuid[] IS NULL)
        OR c.id = ANY(%(collections)s)
"""
_COUNT_DOCUMENTS = """
    SELECT coalesce(sum(v.num_chunks), 0)
    FROM retrieval_document d JOIN retrieval_version v ON v.id = d.live_version
    WHERE d.id = ANY(%(documents)s)
"""
_COUNT_FILTERED = """
    SELECT coalesce(sum(v.num_chunks), 0)
    FROM retrieval_document d JOIN retrieval_version v ON v.id = d.live_version
    WHERE true {conditions}
"""
_EXACT = """
    WITH seen AS MATERIALIZED (
        SELECT e.chunk_id, e.vector::halfvec({dimensions}) AS vector FROM retrieval_embedding e
        JOIN retrieval_chunk c ON c.id = e.chunk_id
        JOIN retrieval_document d ON d.id = c.document_id AND d.live_version = c.version_id
        WHERE e.model_id = {model} {conditions}
    )
    SELECT chunk_id, 1 - (vector <=> %(vector)s::halfvec({dimensions})) FROM seen
    ORDER BY vector <=> %(vector)s::halfvec({dimensions}), chunk_id
    LIMIT %(limit)s
"""
_NEAR = """
    WITH near AS MATERIALIZED (
        SELECT e.chunk_id, e.vector::halfvec({dimensions}) <=> %(vector)s::halfvec({dimensions}) AS far
        FROM retrieval_embedding e
        JOIN retrieval_chunk c ON c.id = e.chunk_id
        JOIN retrieval_document d ON d.id = c.document_id AND d.live_version = c.version_id
        WHERE e.model_id = {model} {conditions}
        ORDER BY e.vector::halfvec({dimensions}) <=> %(vector)s::halfvec({dimensions})
        LIMIT %(limit)s
    )
    SELECT chunk_id, 1 - far FROM near ORDER BY far, chunk_id
"""
_SIMILARITY = """
    WITH given AS MATERIALIZED (
        SELECT chunk_id, vector FROM retrieval_embedding
        WHERE chunk_id = ANY(%(chunks)s) AND model_id = %(model)s
    )
    SELECT a.chunk_id, b.chunk_id, 1 - (a.vector <=> b.vector)
    FROM given a JOIN given b ON a.chunk_id < b.chunk_id
"""
_HOLD = "SELECT id FROM retrieval_embeddingmodel WHERE id = %s FOR KEY SHARE"
_SETTINGS = """
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
        set_config('hnsw.ef_search', %s, true), set_config('hnsw.max_scan_tuples', %s, true)
"""


def nearest(
    vector: "Sequence[float] | array[float]", model: EmbeddingModel, scope: SearchScope, limit: int
) -> list[tuple[int, float]]:
    """Ids of the nearest passages and their cosines, the nearest first. Inside a transaction."""
    given = {
        **scope.parameters(),
        "vector": HalfVector(list(vector)).to_text(),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        # The index gives up after so many that a filter leaves out: what it leaves has to be known.
        filtered = _COUNT_FILTERED.format(conditions=scope.conditions("d"))
        count = filtered if scope.is_filtered else f"SELECT ({_COUNT}) + ({_COUNT_DOCUMENTS})"
        cursor.execute(count, given)
        is_exact = cursor.fetchone()[0] <= MAX_EXACT or not _has_index(model.dimensions)
        if not is_exact:
            cursor.execute(_SETTINGS, [str(max(EF_SEARCH, limit)), str(MAX_SCAN_TUPLES)])
        found: list[tuple[int, float]] = []
        if not is_exact:
            found = _found(cursor, _NEAR, given, model, scope)
        if len(found) < limit:
            # Others' passages are nearer by far, and it has given up among these.
            found = _found(cursor, _EXACT, given, model, scope)
        return found


def _found(
    cursor: Any, statement: str, given: dict[str, Any], model: EmbeddingModel, scope: SearchScope
) -> list[tuple[int, float]]:
    conditions = scope.conditions("e")
    names = {"dimensions": int(model.dimensions), "model": int(model.pk), "conditions": conditions}
    cursor.execute(statement.format(**names), given)
    return [(id_, float(cosine)) for id_, cosine in cursor.fetchall()]


def similarity(chunk_ids: Sequence[int], model: EmbeddingModel) -> dict[tuple[int, int], float]:
    """Cosines of all pairs of these passages that the model has vectors of, the smaller id first."""
    with connection.cursor() as cursor:
        cursor.execute(_SIMILARITY, {"chunks": list(chunk_ids), "model": model.pk})
        return {(one, other): float(cosine) for one, other, cosine in cursor}


def models_in_use() -> list[EmbeddingModel]:
    """All that passages have vectors of, or soon will; the one that is configured now is the last."""
    return list(EmbeddingModel.objects.order_by(F("configured_at").asc(nulls_first=True), "pk"))


def hold(model: EmbeddingModel) -> None:
    """Until the transaction ends the model is not deleted. Raises DoesNotExist where it has been."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [model.pk])
        if cursor.fetchone() is None:
            raise EmbeddingModel.DoesNotExist


def index_name(model: EmbeddingModel) -> str:
    return f"embedding_near_{int(model.pk)}"


def _has_index(dimensions: int) -> bool:
    return dimensions <= MAX_INDEXED_DIMENSIONS


def embedding_model(name: str, dimensions: int, revision: str = "") -> EmbeddingModel:
    """The row of a model, made where there is none, with its index. In the system's scope."""
    model, _ = EmbeddingModel.objects.get_or_create(
        name=name, revision=revision, defaults={"dimensions": dimensions}
    )
    if model.dimensions != dimensions:
        raise ValueError(f"{name} has {model.dimensions} dimensions here, and not {dimensions}.")
    if not _has_index(dimensions):
        return model
    with connection.cursor() as cursor:
        # Asked first: to say IF NOT EXISTS, Postgres would wait for everybody who writes vectors.
        cursor.execute("SELECT to_regclass(%s)", [index_name(model)])
        if cursor.fetchone()[0] is not None:
            return model
    with transaction.atomic(), connection.cursor() as cursor:
        # Two who make it at once would both find none (IF NOT EXISTS): the second waits, and finds it.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [index_name(model)])
        cursor.execute(
            f"CREATE INDEX IF NOT EXISTS {index_name(model)} ON retrieval_embedding"
            f" USING hnsw ((vector::halfvec({int(dimensions)})) halfvec_cosine_ops)"
            f" WHERE model_id = {int(model.pk)}"
        )
    return model
