"""Vectors by the model that is configured now, for passages that have those of another, or none.

In a web process, behind everybody's answers and behind files that have just been brought. Meanwhile
passages are found by the vectors that they have; the old ones go when no passage lacks a new one
(retiring.py). What lacks one is looked for, and noted nowhere: however a passage came to be without, it
gets one, and a process that dies loses no more than the batch that it was at. One that the new model
cannot read is stepped over until the process ends, and keeps its old vector. In the system's scope.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from inference import EncodingFailed
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
    WHERE c.id > %s AND c.id <> ALL(%s) AND NOT EXISTS (
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
        # The model that no passage lacks, beside no other one; but for those that it cannot read.
        self._settled: int | None = None
        self._told: int | None = None  # the model whose beginning the log has been told
        self._failed: set[tuple[int, int]] = set()  # (model, passage) of those that it cannot read

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
        if self._settled == model.pk and not _others(model, self._failed_by(model)):
            return None
        return model if _may_go_on(model, me) else None

    async def _step(
        self, model: EmbeddingModel, embed: Embed, configured: ConfiguredModel, me: str
    ) -> bool:
        """A batch of passages; where none lacks a vector, the end of other models. False: that is all,
        or not now."""
        if chunks := await in_db(_lacking)(model, self._place, self._failed_by(model)):
            if self._told != model.pk:
                await in_db(self._tell_begin)(model)
            async with model_leases.kept(model, me):
                made = await self._embedded(model, chunks, embed)
            if not all(configured.has_made(embedded) for _, embedded in made):
                return False  # its files were changed just now: the next call knows the new ones
            self._place = chunks[-1].pk
            num_kept = sum([await in_db(_keep)(model, *one) for one in made])
            return num_kept > 0 or not made
        if self._place:
            self._place = 0  # once more: what was behind this place may have been replaced
            return True
        await in_db(self._tell_end)(model)
        while await in_db(retire_some)(model):
            if not await in_db(_may_go_on)(model, me):
                return False
        others = await in_db(_others)(model, self._failed_by(model))
        self._settled = None if others else model.pk
        return False

    async def _embedded(
        self, model: EmbeddingModel, chunks: Sequence[Chunk], embed: Embed
    ) -> list[tuple[Sequence[Chunk], Embedded]]:
        """All in one go, or, where that fails, one by one, without those that fail alone. Raises
        EncodingFailed where all do, of a model that has read nothing yet or cannot read a plain word
        either: it is not the texts' fault."""
        try:
            return [(chunks, await embed(staging.to_embed(chunks)))]
        except EncodingFailed as error:
            cause = error
        made: list[tuple[Sequence[Chunk], Embedded]] = []
        failed: list[int] = []
        for chunk in chunks:
            try:
                made.append(([chunk], await embed(staging.to_embed([chunk]))))
            except EncodingFailed:
                failed.append(chunk.pk)
        if not made and not (await _has_any(model) and await _works(embed)):
            raise cause
        if failed:
            logger.warning("passages %s get no vectors by %s: %s", failed, model, cause)
        self._failed.update((model.pk, id_) for id_ in failed)
        return made

    def _failed_by(self, model: EmbeddingModel) -> list[int]:
        return [passage for by, passage in self._failed if by == model.pk]

    def _tell_begin(self, model: EmbeddingModel) -> None:
        self._told = model.pk
        num, num_done = _num_passages(), Embedding.objects.filter(model=model).count()
        logger.info("%d of %d passages get vectors by %s", num - num_done, num, model)

    def _tell_end(self, model: EmbeddingModel) -> None:
        if self._told == model.pk:
            self._told = None
            logger.info("all %d passages have vectors by %s", _num_passages(), model)


async def _has_any(model: EmbeddingModel) -> bool:
    found: bool = await in_db(Embedding.objects.filter(model=model).exists)()
    return found


async def _works(embed: Embed) -> bool:
    try:
        await embed(["word"])
    except EncodingFailed:
        return False
    return True


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


def _lacking(model: EmbeddingModel, place: int, but: Sequence[int]) -> list[Chunk]:
    """The first passages behind this place that have no vector by the model, but for some."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_BY_KEY)
        return list(Chunk.objects.raw(_LACKING, [place, list(but), model.pk, AT_ONCE]))


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


def _others(model: EmbeddingModel, failed: Sequence[int] = ()) -> bool:
    """Whether there is another model, for more than the passages that this one failed to read."""
    return any(not _is_for(other, failed) for other in EmbeddingModel.objects.exclude(pk=model.pk))


def _is_for(model: EmbeddingModel, chunk_ids: Sequence[int]) -> bool:
    """Whether its vectors are of these passages, and of no other."""
    vectors = Embedding.objects.filter(model=model)
    return (
        vectors.filter(chunk_id__in=chunk_ids).exists()
        and not vectors.exclude(chunk_id__in=chunk_ids).exists()
    )


def _num_passages() -> int:
    return Collection.objects.aggregate(num=Sum("num_chunks"))["num"] or 0
