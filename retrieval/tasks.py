"""Work on documents that task workers do; each is in the system's scope and may run twice."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache as once
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.cache import cache
from redis import RedisError

from inference import TokenCounter
from retrieval import document_files, expiry, staging, version_leases, versions
from retrieval.chunking import ChunkSettings
from retrieval.models import Document, VersionState
from retrieval.parsing import Limits

_UNREAD = (VersionState.QUEUED, VersionState.PARSING)
_NUM_NEXT = 50  # versions, of which others may take up some
_SENT_S = 900.0  # then it is sent again: the broker may have lost it
_ME = f"{socket.gethostname()[:32]}:{secrets.token_hex(4)}"


@shared_task(name="retrieval.tasks.read_version")  # type: ignore[untyped-decorator]
def read_version(version_id: str) -> None:
    """Read a file: its text and passages. There is a task for each, but not of necessity this one is
    read: it is that whose turn it is, for a thousand may be one person's."""
    me = f"{_ME}:{os.getpid()}"
    limits = Limits(ocr_languages=settings.OCR_LANGUAGES)
    counter = _counter(settings.EMBEDDING_MODEL)
    for next_id in _in_turn():
        with suppress(RedisError):
            cache.delete(_sent_key(next_id))  # who takes it up from a dead worker sends it again
        chunking = _chunking(next_id, counter.window_tokens)
        if staging.read(next_id, me, counter, limits, chunking):
            return


def _in_turn() -> Iterator[UUID]:
    """Nearly always the first one is to be had; only where others take up so many, all are looked at."""
    for limit in (_NUM_NEXT, None):
        yield from version_leases.find_waiting(*_UNREAD, limit=limit)


def _chunking(version_id: UUID, window_tokens: int) -> ChunkSettings:
    """As was asked for with the document, within what the model reads."""
    rows = Document.objects.filter(versions=version_id)
    asked = rows.values_list("chunk_tokens", "chunk_overlap_tokens").first() or (None, None)
    max_tokens, overlap_tokens = asked
    return ChunkSettings(
        max_tokens=min(settings.CHUNK_TOKENS if max_tokens is None else max_tokens, window_tokens),
        overlap_tokens=settings.CHUNK_OVERLAP_TOKENS if overlap_tokens is None else overlap_tokens,
    )


@shared_task(name="retrieval.tasks.take_up_documents")  # type: ignore[untyped-decorator]
def take_up_documents() -> None:
    """Files that nobody reads: their worker has died, or the broker was away. Each is sent once, or this
    would fill the queue faster than many files are read."""
    for version_id in version_leases.find_waiting(*_UNREAD):
        if cache.add(_sent_key(version_id), True, _SENT_S):
            read_version.delay(str(version_id))


def _sent_key(version_id: UUID) -> str:
    return f"version-sent:{version_id}"


@shared_task(name="retrieval.tasks.sweep_documents")  # type: ignore[untyped-decorator]
def sweep_documents() -> None:
    """Drop what a crash has left on the disk, versions that are long replaced, and what was kept for a
    time that is over."""
    expiry.drop_expired()
    versions.prune()
    document_files.sweep()


@once
def _counter(model: str) -> TokenCounter:
    return TokenCounter.load(settings.ENGINE, model)
