"""Answers that were given before: found by the very question, or by one that means the same.

Only the first question of a chat is looked up, where a collection's owner has switched it on, or a
person for themselves. Whose an entry is, is decided by the database; what an answer depends on is in
its key, so that a changed document, model or prompt finds nothing.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error, transaction
from django.db.models import F
from django.utils import timezone
from pgvector import HalfVector
from pgvector.django import CosineDistance

from chat import metrics
from chat.cache_scope import CacheScope
from chat.db import in_db
from chat.embedder import meanings_of
from chat.models import CachedAnswer
from chat.wire import dumps
from inference import Caller
from retrieval.models import Collection
from retrieval.searching import Meaning

logger = logging.getLogger(__name__)

MAX_TEXT_CHARS = 100_000
_NUMBERS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_NOTS = re.compile(
    r"\b(?:not|no|nor|none|never|without|cannot|nicht|kein\w*|nie|niemals|ohne)\b|n['’]t\b"
    r"|\b(?:لا|ليس|بدون)|[不没沒无無未]|ない|ません",  # in the midst of a run of characters, too
    re.I,
)
_MAX_CHARS = 240
"""Of a question that is found by its meaning. A model of vectors reads so many tokens and no more: two
longer ones that begin alike are the same to it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer depends on: the question, and `context`, a hash of all else."""

    scope: CacheScope
    question: str
    context: str
    meanings: Sequence[Meaning] = ()

    @property
    def key(self) -> str:
        question = " ".join(self.question.split())
        return sha256(f"{self.context}\n{question}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Hit:
    """`similarity` is 1 for the very question."""

    row: CachedAnswer
    similarity: float


def context_of(
    scope: CacheScope,
    model: str,
    messages: Sequence[Any],
    sampling: Any,
    max_context_tokens: int | None,
) -> str:
    """`messages` are those of the prompt without the question; `sampling` is what the answer is drawn
    with. Who may fill less of the context reads fewer passages, and has an answer of their own."""
    parts = {
        "model": model,
        "messages": list(messages),
        "sampling": repr(sampling),
        "max_context_tokens": max_context_tokens,
        "versions": list(scope.versions),
    }
    return sha256(dumps(parts).encode()).hexdigest()


async def find(asked: Asked, caller: Caller) -> tuple[Hit | None, Asked]:
    """The answer that was given, if any; and what was asked with its meaning, for `keep`."""
    hit = await in_db(_exact)(asked)
    is_short = len(asked.question) <= _MAX_CHARS
    if hit is None and is_short and settings.CACHE_SIMILARITY < 1:
        meanings = await meanings_of(asked.question, caller)
        asked = Asked(asked.scope, asked.question, asked.context, meanings)
        hit = await in_db(_near)(asked)
    metrics.looked_up(hit.similarity if hit else None)
    return hit, asked


async def keep(asked: Asked, text: str, found: Any, model: str, revision: str) -> None:
    """An answer that is whole. That it is not kept fails nothing."""
    if not text.strip() or len(text) > MAX_TEXT_CHARS:
        return
    try:
        await in_db(_keep)(asked, text, found, model, revision)
    except Error:
        logger.warning("an answer was not cached", exc_info=True)


def forget_old() -> None:
    """In the system's scope."""
    CachedAnswer.objects.filter(expires_at__lt=timezone.now()).delete()


def _rows(asked: Asked) -> Any:
    rows = CachedAnswer.objects.filter(
        collection=asked.scope.collection, expires_at__gt=timezone.now()
    )
    return rows if asked.scope.collection else rows.filter(owner_id=asked.scope.owner_id)


def _exact(asked: Asked) -> Hit | None:
    row = _rows(asked).filter(key=asked.key).first()
    return _counted(Hit(row, 1.0)) if row else None


def _near(asked: Asked) -> Hit | None:
    """A question of the same meaning; never one with other numbers, nor one that says the contrary."""
    if not asked.meanings:
        return None
    meaning = asked.meanings[-1]
    far = CosineDistance("vector", HalfVector(list(meaning.vector)))
    rows = _rows(asked).filter(context=asked.context, vector_model=meaning.model.pk)
    for row in rows.annotate(far=far).order_by("far")[:5]:
        similarity = 1 - row.far
        if similarity < settings.CACHE_SIMILARITY:
            return None
        if _marks(row.question) == _marks(asked.question):
            return _counted(Hit(row, similarity))
    return None


def _marks(question: str) -> tuple[list[str], int, set[str]]:
    """What changes a question and hardly its meaning's vector, which knows no capitals: its numbers in
    their order, how often it says no, and its abbreviations."""
    abbreviations = {word for word in _WORDS.findall(question) if word.isupper()}
    return _NUMBERS.findall(question), len(_NOTS.findall(question)) % 2, abbreviations


def _counted(hit: Hit) -> Hit:
    CachedAnswer.objects.filter(pk=hit.row.pk).update(num_hits=F("num_hits") + 1)
    return hit


def _keep(asked: Asked, text: str, found: Any, model: str, revision: str) -> None:
    meaning = asked.meanings[-1] if asked.meanings else None
    scope = asked.scope
    with transaction.atomic():
        if not _is_current(scope):
            return
        _rows(asked).filter(key=asked.key).delete()
        CachedAnswer.objects.filter(key=asked.key, expires_at__lte=timezone.now()).delete()
        CachedAnswer.objects.create(
            owner_id=scope.owner_id,
            collection_id=scope.collection,
            collections=[UUID(id_) for id_, _ in scope.versions],
            key=asked.key,
            context=asked.context,
            question=asked.question,
            text=text,
            found=found,
            model=model,
            revision=revision,
            vector_model=meaning.model if meaning else None,
            vector=HalfVector(list(meaning.vector)) if meaning else None,
            expires_at=timezone.now() + timedelta(seconds=settings.CACHE_TTL_S),
        )


def _is_current(scope: CacheScope) -> bool:
    """Whether its collections are as they were: what has gone from one since is kept nowhere."""
    rows = Collection.objects.filter(pk__in=[UUID(id_) for id_, _ in scope.versions])
    now = dict(rows.values_list("pk", "version"))
    return now == {UUID(id_): version for id_, version in scope.versions}
