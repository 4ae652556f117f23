"""Making a version of a document found: its passages, their vectors and words, in one transaction.

In the system's scope; whoever asks for it has been asked for their rights before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from retrieval.models import (
    Chunk,
    Collection,
    Document,
    Embedding,
    EmbeddingModel,
    Version,
    VersionState,
)
from retrieval.terms import Terms, terms_of
from retrieval.vectors import hold
from retrieval.version_leases import LeaseLost

_COUNT_TERMS = """
    INSERT INTO retrieval_term AS known (collection_id, term, num_chunks)
    SELECT %(collection)s, term, num FROM unnest(%(terms)s::text[], %(nums)s::int[]) AS given (term, num)
    ORDER BY term
    ON CONFLICT (collection_id, term) DO UPDATE SET num_chunks = known.num_chunks + excluded.num_chunks
"""
_FORGET_TERMS = "DELETE FROM retrieval_term WHERE collection_id = %s AND num_chunks <= 0"
_TERMS_OF_VERSION = """
    SELECT word, count(*) FROM retrieval_chunk, unnest(terms) AS term (word, positions, weights)
    WHERE version_id = %s AND word NOT LIKE ':%%' GROUP BY word
"""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk to be kept, and its vector where there is a model."""

    text: str
    start: int
    end: int
    first_page: int = 1
    last_page: int = 1
    context: str = ""
    num_tokens: int = 0
    vector: Sequence[float] | None = None


def make_live(
    version: Version, passages: Sequence[Passage], model: EmbeddingModel | None, me: str = ""
) -> None:
    """Keep the passages, and let them be found in place of those of the version before, which go. `me`
    has to hold the lease, where it is said.

    Raises Document.DoesNotExist for one that was deleted meanwhile, EmbeddingModel.DoesNotExist for a
    model whose last vectors were, and LeaseLost for a version that was cancelled, or that somebody else
    works on; then nothing is kept.
    """
    with transaction.atomic():
        # The collection's row is locked: its sums, and those of its words, change by one at a time. Not
        # its key: what is brought meanwhile refers to it, and would wait for all of this.
        collections = Collection.objects.select_for_update(no_key=True)
        collection = collections.get(pk=version.collection_id)
        document = Document.objects.select_for_update(no_key=True).get(pk=version.document_id)
        if me:
            _hold_lease(version, me)
        if document.live_version is not None:
            if document.versions.filter(pk=document.live_version, number__gt=version.number):
                return _finish(version, 0)  # a newer one was faster
            _remove_passages(document.live_version, collection.pk)
        if model is not None:
            hold(model)
        terms = [terms_of(f"{passage.context} {passage.text}") for passage in passages]
        chunks = Chunk.objects.bulk_create(
            (_chunk(version, n, *pair) for n, pair in enumerate(zip(passages, terms, strict=True))),
            batch_size=500,
        )
        if model is not None:
            _keep_vectors(version, chunks, passages, model)
        _count(collection.pk, terms)
        document.live_version = version.pk
        document.media_type = version.media_type or document.media_type
        document.save(update_fields=["live_version", "media_type"])
        _finish(version, len(chunks))


def _hold_lease(version: Version, me: str) -> None:
    """Until the end of the transaction nobody cancels it. Raises LeaseLost."""
    rows = Version.objects.select_for_update(no_key=True).filter(pk=version.pk)
    if not rows.filter(lease_owner=me, state=VersionState.EMBEDDING).values_list("pk").first():
        raise LeaseLost


def _finish(version: Version, num_chunks: int) -> None:
    version.state, version.num_chunks = VersionState.READY, num_chunks
    version.ready_at, version.reason, version.staged = timezone.now(), "", []
    version.save(update_fields=["state", "num_chunks", "ready_at", "reason", "staged"])


def forget(document: Document) -> None:
    """Delete a document with all that was kept of it."""
    with transaction.atomic():
        collections = Collection.objects.select_for_update(no_key=True)
        collections.filter(pk=document.collection_id).first()
        # Looked up behind the lock: who was publishing until now has made another version live.
        kept = Document.objects.filter(pk=document.pk).first()
        if kept is None:
            return
        if kept.live_version is not None:
            _remove_passages(kept.live_version, kept.collection_id)
        kept.delete()


def _chunk(version: Version, number: int, passage: Passage, terms: Terms) -> Chunk:
    return Chunk(
        version=version,
        document_id=version.document_id,
        collection_id=version.collection_id,
        number=number,
        start=passage.start,
        end=passage.end,
        first_page=passage.first_page,
        last_page=passage.last_page,
        context=passage.context,
        text=passage.text,
        num_tokens=passage.num_tokens,
        num_terms=terms.num_terms,
        terms=terms.to_tsvector(version.collection_id),
    )


def _keep_vectors(
    version: Version, chunks: Sequence[Chunk], passages: Sequence[Passage], model: EmbeddingModel
) -> None:
    Embedding.objects.bulk_create(
        (
            Embedding(
                chunk=chunk,
                model=model,
                collection_id=version.collection_id,
                vector=passage.vector,
            )
            for chunk, passage in zip(chunks, passages, strict=True)
            if passage.vector is not None
        ),
        batch_size=500,
    )


def _count(collection_id: UUID, terms: Sequence[Terms]) -> None:
    nums = Counter(word for each in terms for word in each.counts)
    _add_terms(collection_id, nums)
    Collection.objects.filter(pk=collection_id).update(
        version=F("version") + 1,
        num_chunks=F("num_chunks") + len(terms),
        num_terms=F("num_terms") + sum(each.num_terms for each in terms),
    )


def _remove_passages(version_id: UUID, collection_id: UUID) -> None:
    chunks = Chunk.objects.filter(version=version_id)
    with connection.cursor() as cursor:
        cursor.execute(_TERMS_OF_VERSION, [version_id])
        nums = {word: -num for word, num in cursor.fetchall()}
        _add_terms(collection_id, nums)
        cursor.execute(_FORGET_TERMS, [collection_id])
    sizes = chunks.values_list("num_terms", flat=True)
    num_chunks, num_terms = len(sizes), sum(sizes)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_chunk WHERE version_id = %s", [version_id])
    Collection.objects.filter(pk=collection_id).update(
        version=F("version") + 1,
        num_chunks=F("num_chunks") - num_chunks,
        num_terms=F("num_terms") - num_terms,
    )


def _add_terms(collection_id: UUID, nums: "Counter[str] | dict[str, int]") -> None:
    given: dict[str, Any] = {
        "collection": collection_id,
        "terms": list(nums),
        "nums": list(nums.values()),
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_TERMS, given)
