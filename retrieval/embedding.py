"""Vectors for the passages of versions that have been read; then they are found.

In a web process, whose engine has the embedding model, behind everybody's answers (the class
`background`). A process that dies loses vectors that are not kept yet, and the next one begins again.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from django.db import DatabaseError

from inference import EncodingFailed
from retrieval import staging, version_leases
from retrieval.db import in_db
from retrieval.indexing import Passage, make_live
from retrieval.models import Collection, Document, EmbeddingModel, Version, VersionState
from retrieval.renewal import renewed
from retrieval.vectors import embedding_model
from retrieval.version_leases import LeaseLost

logger = logging.getLogger(__name__)

_NUM_NEXT = 50  # versions, of which others may take up some
AT_ONCE = 64  # passages; between two calls the lease is renewed, and progress is told


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector of length 1 for each text, and by which model in which of its revisions; and the part of
    each text that the model could read."""

    vectors: Sequence[Sequence[float]]
    model: str
    revision: str = ""
    known_shares: Sequence[float] = ()


Embed = Callable[[Sequence[str]], Awaitable[Embedded]]


async def embed_waiting(embed: Embed, me: str, max_chunks: int | None = None) -> None:
    """One version after the other, until none waits; with `max_chunks` only those that are so small. The
    next is looked up each time: more may have come meanwhile. In the system's scope. Raises what `embed`
    does, but for what one of them may be the reason of; then the next call goes on."""
    find = partial(version_leases.find_waiting, max_chunks=max_chunks, limit=_NUM_NEXT)
    tried: set[UUID] = set()
    while True:
        waiting = await in_db(find)(VersionState.EMBEDDING)
        version_id = next((id_ for id_ in waiting if id_ not in tried), None)
        if version_id is None:
            return
        tried.add(version_id)
        version = await in_db(version_leases.claim)(version_id, me, VersionState.EMBEDDING)
        if version is not None:
            await _embed_one(version, embed, me)


async def _embed_one(version: Version, embed: Embed, me: str) -> None:
    try:
        # Behind everybody's answers a call may wait for minutes, and many passages take long to keep.
        async with renewed(in_db(partial(_renew, version.pk, me)), version_leases.RENEW_S):
            try:
                passages, model = await _embedded(version, embed, me)
            except EncodingFailed as error:
                # Accepted and lost: its text may be the reason, and the next document has another one.
                logger.warning("version %s has no vectors yet: %s", version.pk, error)
                await in_db(version_leases.put_off)(version.pk, me)
                return
            except BaseException:
                # This process ends, or its engine does: the document has done nothing.
                await in_db(version_leases.hand_on)(version.pk, me, VersionState.EMBEDDING)
                raise
            await in_db(_publish)(version.pk, me, passages, model)
    except (LeaseLost, Version.DoesNotExist, Document.DoesNotExist, Collection.DoesNotExist):
        logger.warning("version %s is gone, or another process works on it", version.pk)
    except DatabaseError:
        logger.exception("version %s could not be kept", version.pk)
        raise


async def _embedded(
    version: Version, embed: Embed, me: str
) -> tuple[list[Passage], EmbeddingModel | None]:
    passages, done = staging.staged(version), []
    model = None
    for at in range(0, len(passages), AT_ONCE):
        part = passages[at : at + AT_ONCE]
        embedded = await embed(staging.to_embed(part))
        vectors = embedded.vectors
        done += [replace(one, vector=list(v)) for one, v in zip(part, vectors, strict=True)]
        if model is None:
            model = await in_db(_model)(embedded)
        await in_db(version_leases.update)(version.pk, me, num_embedded=len(done))
    return done, model


def _renew(version_id: UUID, me: str) -> bool:
    """False: another process has taken over."""
    try:
        version_leases.update(version_id, me)
    except LeaseLost:
        return False
    return True


def _publish(
    version_id: UUID, me: str, passages: Sequence[Passage], model: EmbeddingModel | None
) -> None:
    """Raises LeaseLost, and DoesNotExist for what was deleted meanwhile."""
    version_leases.update(version_id, me)
    version = Version.objects.get(pk=version_id)
    try:
        make_live(version, passages, model, me)
    except EmbeddingModel.DoesNotExist:
        # Another model has taken over from this one meanwhile. What was made of it is found by it
        # nevertheless, until it has vectors of that one (reembedding.py).
        assert model is not None
        model = embedding_model(model.name, model.dimensions, model.revision)
        make_live(version, passages, model, me)
    version_leases.hand_on(version_id, me, VersionState.READY)


def _model(embedded: Embedded) -> EmbeddingModel:
    return embedding_model(embedded.model, len(embedded.vectors[0]), embedded.revision)
