"""Vectors by the model that is configured now, for passages that have those of another, or none.

In a web process, behind everybody's answers and behind files that have just been brought. Meanwhile
passages are found by the vectors that they have; the old ones go when no passage lacks a new one
(retiring.py). What lacks one is looked for, and noted nowhere: however a passage came to be without, it
gets one, and a process that dies loses no more than the batch that it was at. In the system's scope.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from retrieval import model_leases, staging
from retrieval.db import in_db
from retrieval.embedding import AT_ONCE, Embed, Embedded
from retrieval.models import Chunk, Collection, Embedding, EmbeddingModel, Version, VersionState
from retrieval.retiring import retire_some
from retrieval.vectors import embedding_model, models_in_use

logger = logging.getLogger(__name__)

# By the primary key, on from a place, with a look at the vectors of each. The index of terms, which the
# policy of passages invites to, would fetch all of them each time (it is only ever read by bitmaps), and
# a join, which OFFSET forbids, all vectors; `+ 0` keeps the index of models away, which fits for as long
# as the statistics know none of the new one's vectors, and then no more.
_BY_KEY = "SET LOCAL enable_bitmapscan = off"
_LACKING = """
    SELECT c.id, c.context, c.text FROM retrieval_chunk c
    WHERE c.id > %s AND NOT EXISTS (
        SELECT FROM retrieval_embedding e WHERE e.chunk_id = c.id AND e.model_id + 0 = %s OFFSET 0)
    ORDER BY c.id LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """What `VITRINE_EMBEDDING_MODEL` names, with its files as they are. Another revision of the same
    name is another model."""

    name: str
    dimensions: int
    revision: str = ""

    def has_made(self, embedded: Embedded) -> bool:
        return (embedded.model, embedded.revision) == (self.name, self.revision)


class Reembedding:
    """How far one web process is, which was started at `since`."""

    def __init__(self, since: datetime | None = None) -> None:
        self._since = since or timezone.now()
        self._place = 0  # the id of the passage that was looked at last
        self._settled: int | None = None  # the model that no passage lacks, beside no other one
        self._told: int | None = None  # the model whose beginning the log has been told

    async def run(self, embed: Embed, configured: ConfiguredModel, me: str) -> None:
        """Until no passage lacks a vector and no other model is left; or files wait for theirs, or
        another process is at it. Raises what `embed` does; then the next call goes on."""
        model = await in_db(self._take_up)(configured, me)
        if model is None:
            return
        try:
            while await self._step(model, embed, configured, me):
                if not await in_db(_may_go_on)(model, me):
                    return
        finally:
            await in_db(model_leases.release)(model, me)

    def _take_up(self, configured: ConfiguredModel, me: str) -> EmbeddingModel | None:
        if not EmbeddingModel.objects.exists() and not _num_passages():
            return None
        model = embedding_model(configured.name, configured.dimensions, configured.revision)
        if not model_leases.takes_over(model, self._since):
            return None
        if self._settled == model.pk and not _others(model):
            return None
        return model if _may_go_on(model, me) else None

    async def _step(
        self, model: EmbeddingModel, embed: Embed, configured: ConfiguredModel, me: str
    ) -> bool:
        """A batch of passages; where none lacks a vector, the end of other models. False: that is all,
        or not now."""
        if chunks := await in_db(_lacking)(model, self._place):
            if self._told != model.pk:
                await in_db(self._tell_begin)(model)
            async with model_leases.kept(model, me):
                embedded = await embed(staging.to_embed(chunks))
            if not configured.has_made(embedded):
                return False  # its files were changed just now: the next call knows the new ones
            self._place = chunks[-1].pk
            return await in_db(_keep)(model, chunks, embedded) > 0
        if self._place:
            self._place = 0  # once more: what was behind this place may have been replaced
            return True
        await in_db(self._tell_end)(model)
        while await in_db(retire_some)(model):
            if not await in_db(_may_go_on)(model, me):
                return False
        self._settled = None if await in_db(_others)(model) else model.pk
        return False

    def _tell_begin(self, model: EmbeddingModel) -> None:
        self._told = model.pk
        num, num_done = _num_passages(), Embedding.objects.filter(model=model).count()
        logger.info("%d of %d passages get vectors by %s", num - num_done, num, model)

    def _tell_end(self, model: EmbeddingModel) -> None:
        if self._told == model.pk:
            self._told = None
            logger.info("all %d passages have vectors by %s", _num_passages(), model)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many passages have a model's vectors, and what it is there for."""

    num_done: int
    num_passages: int
    state: str

    @property
    def percent(self) -> int:
        """Rounded down: nothing is all done that is not."""
        return min(100, 100 * self.num_done // self.num_passages) if self.num_passages else 100


def progress(model: EmbeddingModel) -> Progress:
    """In the system's scope."""
    num_done = Embedding.objects.filter(model=model).count()
    num, newest = _num_passages(), models_in_use()[-1]
    if model.pk != newest.pk:
        state = "gives way"
    elif num_done < num or _others(model):
        state = "takes over"
    else:
        state = "is in use"
    return Progress(num_done, num, state)


def _may_go_on(model: EmbeddingModel, me: str) -> bool:
    """What has just been brought is found by nothing yet, and goes first."""
    if Version.objects.filter(state=VersionState.EMBEDDING).exists():
        return False
    return model_leases.claim(model, me)


def _lacking(model: EmbeddingModel, place: int) -> list[Chunk]:
    """The first passages behind this place that have no vector by the model."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_BY_KEY)
        return list(Chunk.objects.raw(_LACKING, [place, model.pk, AT_ONCE]))


def _keep(model: EmbeddingModel, chunks: Sequence[Chunk], embedded: Embedded) -> int:
    """How many were kept. Those that are gone, or are being deleted just now, are left out: waiting for
    who deletes them could be for ever, where that one waits for us."""
    vectors = dict(zip((chunk.pk for chunk in chunks), embedded.vectors, strict=True))
    with transaction.atomic():
        there = Chunk.objects.select_for_update(skip_locked=True, no_key=True)
        rows = list(there.filter(pk__in=vectors).order_by("pk").values_list("pk", "collection_id"))
        Embedding.objects.bulk_create(
            (
                Embedding(
                    chunk_id=id_,
                    model=model,
                    collection_id=collection_id,
                    vector=list(vectors[id_]),
                )
                for id_, collection_id in rows
            ),
            # Of a process that was thought dead: it has made the same.
            ignore_conflicts=True,
        )
    return len(rows)


def _others(model: EmbeddingModel) -> bool:
    return EmbeddingModel.objects.exclude(pk=model.pk).exists()


def _num_passages() -> int:
    return Collection.objects.aggregate(num=Sum("num_chunks"))["num"] or 0
