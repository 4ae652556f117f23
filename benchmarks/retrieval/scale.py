"""How long a hybrid search takes among many passages, for readers who may see little, some or all.

The passages are made up: words as often as in texts (Zipf), and vectors of 24 hidden directions with
some noise, which is about as clustered as real ones are. They are written by the superuser, past
row-level security; searched is as the app does. Recall is that of the index against every vector that
the reader may see.
"""

import time
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import numpy as np
import psycopg
from django.conf import settings
from django.db import connection, transaction

from benchmarks.retrieval.made_up import DIMENSIONS, Passages, questions
from benchmarks.table import Row
from retrieval import vectors
from retrieval.ids import uuid7
from retrieval.models import Access, Collection, Document, EmbeddingModel, Version
from retrieval.scopes import SearchScope
from retrieval.searching import Meaning, search
from webapp.models import User
from webapp.tenancy import as_system, as_user

SHARES = {"0.1 %": 0.001, "10 %": 0.1, "all": 1.0}
_BATCH = 20_000


@dataclass(slots=True)
class Reader:
    """Somebody who owns the collections whose rows are `begin` to `end`; or may read all of them."""

    name: str
    user: User
    begin: int
    end: int
    collection: Collection | None = None


def measure(sizes: list[int], num_searches: int) -> list[Row]:
    return [row for size in sizes for row in _measure(size, num_searches)]


def _measure(num_chunks: int, num_searches: int) -> list[Row]:
    passages = Passages(num_chunks)
    with _superuser() as admin:
        admin.execute("TRUNCATE retrieval_collection, retrieval_embeddingmodel CASCADE")
    readers = _readers(num_chunks)
    with as_system():
        model = EmbeddingModel.objects.create(name=f"made-up-{num_chunks}", dimensions=DIMENSIONS)
    fill_s = _fill(passages, readers, model)
    build_s = _build(model)
    rows = []
    for reader in readers:
        with as_user(reader.user.pk):
            took = _searches(passages, reader, model, num_searches)
        rows.append(
            {
                "chunks": num_chunks,
                "reader": reader.name,
                "HNSW s": build_s,
                "fill s": fill_s,
                **took,
            }
        )
    return rows


def _readers(num_chunks: int) -> list[Reader]:
    """The first shares of the rows are collections of their own; who reads all is let into each."""
    readers, begin = [], 0
    for name, share in SHARES.items():
        user = User.objects.create_user(f"{uuid7().hex}@example.org")
        end = num_chunks if share == 1 else begin + round(num_chunks * share)
        with as_user(user.pk):
            collection = Collection.objects.create(owner=user, name=name)
        readers.append(Reader(name, user, begin, end, collection))
        begin = end
    *others, last = readers
    with as_system():
        for reader in others:
            Access.objects.create(collection=reader.collection, owner=reader.user, user=last.user)
    last.begin = 0
    return readers


def _fill(passages: Passages, readers: list[Reader], model: EmbeddingModel) -> float:
    began_s, begin = time.monotonic(), 0
    with _superuser() as admin, as_system():
        for reader in readers:
            assert reader.collection is not None
            document = Document.objects.create(collection=reader.collection, name=reader.name)
            version = Version.objects.create(document=document, collection=reader.collection)
            Document.objects.filter(pk=document.pk).update(live_version=version.pk)
            for at in range(begin, reader.end, _BATCH):
                _copy(admin, passages, version, model, range(at, min(at + _BATCH, reader.end)))
            _count(admin, passages, reader.collection, begin, reader.end)
            begin = reader.end
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE retrieval_chunk; ANALYZE retrieval_term")
    return time.monotonic() - began_s


def _copy(
    admin: Any, passages: Passages, version: Version, model: EmbeddingModel, numbers: range
) -> None:
    """The id of a chunk is its number, and 1."""
    chunk = (
        'COPY retrieval_chunk (id, version_id, document_id, collection_id, number, start, "end",'
        " first_page, last_page, context, text, num_tokens, num_terms, terms) FROM STDIN"
    )
    ids = (version.pk, version.document_id, version.collection_id)
    with admin.cursor() as cursor:
        with cursor.copy(chunk) as copy:
            for n in numbers:
                terms = passages.terms(n)
                facts = (n, 0, 9, 1, 1, "", f"passage {n}", 120, terms.num_terms)
                copy.write_row((n + 1, *ids, *facts, terms.to_tsvector(version.collection_id)))
        embedding = (
            "COPY retrieval_embedding (chunk_id, model_id, collection_id, vector) FROM STDIN"
        )
        with cursor.copy(embedding) as copy:
            for n in numbers:
                vector = "[" + ",".join(map(str, passages.vectors[n])) + "]"
                copy.write_row((n + 1, model.pk, version.collection_id, vector))


def _count(admin: Any, passages: Passages, collection: Collection, begin: int, end: int) -> None:
    nums, num_terms = passages.counts(begin, end)
    with admin.cursor() as cursor:
        with cursor.copy(
            "COPY retrieval_term (collection_id, term, num_chunks) FROM STDIN"
        ) as copy:
            for word, num in nums.items():
                copy.write_row((collection.pk, word, num))
        cursor.execute(
            "UPDATE retrieval_collection SET num_chunks = %s, num_terms = %s WHERE id = %s",
            [end - begin, num_terms, collection.pk],
        )


def _build(model: EmbeddingModel) -> float:
    began_s = time.monotonic()
    with as_system(), connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '3GB'")
        cursor.execute("SET max_parallel_maintenance_workers = 2")
        vectors.embedding_model(model.name, model.dimensions)
        cursor.execute("ANALYZE retrieval_embedding")
    return time.monotonic() - began_s


def _searches(passages: Passages, reader: Reader, model: EmbeddingModel, num: int) -> Row:
    seen = passages.vectors[reader.begin : reader.end].astype(np.float32)
    took_ms, found_of_ten, scope = [], [], SearchScope()
    for text, vector in questions(passages, reader.begin, reader.end, num):
        meaning = Meaning(model, list(map(float, vector)))
        began_s = time.monotonic()
        search(text, [meaning], scope)
        took_ms.append((time.monotonic() - began_s) * 1e3)
        with transaction.atomic():
            near = [id_ for id_, _ in vectors.nearest(meaning.vector, model, scope, 10)]
        wanted = set((np.argsort(-(seen @ vector))[:10] + reader.begin + 1).tolist())
        found_of_ten.append(len(wanted & set(near)) / 10)
    return {
        "p50 ms": median(took_ms),
        "p95 ms": quantiles(took_ms, n=20)[-1],
        "recall@10": float(np.mean(found_of_ten)),
    }


def _superuser() -> psycopg.Connection[Any]:
    from webapp.servers.postgres import Postgres

    server = Postgres(settings.DATA_DIR)
    return psycopg.connect(server.conninfo(user="postgres"), autocommit=True)
