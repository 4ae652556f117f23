"""Models that another one has taken over from: their vectors go, then their index, then they do.

An old vector goes only where its passage has a new one, and a model only when it has no vector left. So
whatever is published meanwhile by a process that still has the old model, nothing that could be found by
its meaning ever cannot. In the system's scope.
"""

import logging

from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError

from retrieval.models import Embedding, EmbeddingModel
from retrieval.vectors import index_name

logger = logging.getLogger(__name__)

AT_ONCE = 2_000  # vectors

# Who deletes a document at the same time holds its vectors; those go with it.
_DROP_VECTORS = """
    DELETE FROM retrieval_embedding WHERE id IN (
        SELECT old.id FROM retrieval_embedding old
        WHERE old.model_id = %s AND EXISTS (
            SELECT FROM retrieval_embedding new
            WHERE new.chunk_id = old.chunk_id AND new.model_id = %s)
        LIMIT %s FOR UPDATE OF old SKIP LOCKED)
"""


def retire_some(model: EmbeddingModel) -> bool:
    """Delete a batch of what `model` has taken over. False: there is nothing to delete, or not now."""
    _check_scope()
    for old in EmbeddingModel.objects.exclude(pk=model.pk).order_by("pk"):
        if _drop_vectors(old, model):
            return True
        if not _has_vectors(old):
            _drop_index(old)
            if _drop_model(old):
                logger.info("the vectors by %s are deleted: %s has taken over", old, model)
                return True
    return False


def _check_scope() -> None:
    """Policies protect rows, and no index; and who sees no vectors would take them for deleted."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT retrieval_is_system()")
        if not cursor.fetchone()[0]:
            raise PermissionError("Models are deleted in the system's scope.")


def _drop_vectors(old: EmbeddingModel, new: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DROP_VECTORS, [old.pk, new.pk, AT_ONCE])
        return int(cursor.rowcount)


def _has_vectors(model: EmbeddingModel) -> bool:
    return Embedding.objects.filter(model=model).exists()


def _drop_index(model: EmbeddingModel) -> None:
    """Before the model: an index without one would be found by nobody. Concurrently: else all who search
    would wait behind us while we wait for who writes."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model)}")


def _drop_model(model: EmbeddingModel) -> bool:
    """With the cached answers whose questions have vectors of it. False: somebody publishes with it just
    now (vectors.hold), or has done so; or there are vectors of something else than passages, which are
    not ours to drop."""
    try:
        with transaction.atomic():
            free = EmbeddingModel.objects.select_for_update(skip_locked=True).filter(pk=model.pk)
            if not free.exists() or _has_vectors(model):
                return False
            model.delete()
    except (ProtectedError, IntegrityError):
        return False
    return True
