"""The rows of messages' vectors: which wait, who works on them, what becomes of them. Synchronous, in
the system's scope.

A message has one row that waits, or vectors of one model, or neither where it says too little. What
writes both ways holds the message's lock meanwhile, as who changes its text does; and it takes only
locks that are free, so that nobody waits for it in a ring.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection, transaction
from pgvector import HalfVector

from chat.message_pieces import Piece
from chat.models import MessageVector
from retrieval.models import EmbeddingModel
from retrieval.vectors import embedding_model

LEASE_S = 30
MAX_ATTEMPTS = 3  # processes, or workers of the engine, that one message may take down

WAITING = "SELECT FROM chat_messagevector WHERE model_id IS NULL AND attempts < %s"
_CLAIM = """
    UPDATE chat_messagevector SET
        lease_until = now() + make_interval(secs => %(lease_s)s), attempts = attempts + 1
    WHERE id IN (
        SELECT id FROM chat_messagevector
        WHERE model_id IS NULL AND {which} AND (lease_until IS NULL OR lease_until < now())
        ORDER BY id DESC LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    )
    RETURNING id, message_id
"""
_TEXTS = "SELECT id, text FROM chat_message WHERE id = ANY(%s)"
_RENEW = """
    UPDATE chat_messagevector SET lease_until = now() + make_interval(secs => %s)
    WHERE id = ANY(%s)
"""
_HAND_BACK = """
    UPDATE chat_messagevector SET lease_until = NULL, attempts = attempts - %s::int
    WHERE id = ANY(%s) AND attempts > 0
"""
_LOCK = """
    SELECT m.id FROM chat_message m
    WHERE m.id IN (SELECT message_id FROM chat_messagevector WHERE id = ANY(%s))
    FOR SHARE SKIP LOCKED
"""
_TAKE = """
    DELETE FROM chat_messagevector WHERE id = ANY(%s) AND message_id = ANY(%s)
    RETURNING id, owner_id, conversation_id, message_id, created_at
"""
_LOCK_OLD = """
    SELECT m.id FROM chat_message m
    WHERE m.id IN (SELECT message_id FROM chat_messagevector WHERE model_id = ANY(%s) LIMIT %s)
    FOR SHARE SKIP LOCKED
"""
_QUEUE_ANEW = """
    WITH gone AS (
        DELETE FROM chat_messagevector WHERE message_id = ANY(%s) AND model_id = ANY(%s)
        RETURNING owner_id, conversation_id, message_id, created_at
    )
    INSERT INTO chat_messagevector
        (owner_id, conversation_id, message_id, created_at, start, "end", attempts)
    SELECT DISTINCT ON (message_id) owner_id, conversation_id, message_id, created_at, 0, 0, 0
    FROM gone ORDER BY message_id
"""


@dataclass(slots=True)
class Waiting:
    """A message that this process has taken up, by the row that waits; later with its pieces."""

    row: int
    text: str
    pieces: list[Piece] = field(default_factory=list)
    vectors: list[Sequence[float]] = field(default_factory=list)


def claim(limit: int) -> list[Waiting]:
    """Take up the newest messages that nobody works on; one that was taken up in vain before alone, so
    that it takes no other one along."""
    names = {"limit": limit, "lease_s": LEASE_S, "max": MAX_ATTEMPTS}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.format(which="attempts = 0"), names)
        if not (claimed := dict(cursor.fetchall())):
            tried = "attempts BETWEEN 1 AND %(max)s - 1"
            cursor.execute(_CLAIM.format(which=tried), names | {"limit": 1})
            claimed = dict(cursor.fetchall())
        cursor.execute(_TEXTS, [list(claimed.values())])
        texts: dict[UUID, str] = dict(cursor.fetchall())
    found = [Waiting(row, texts[id_]) for row, id_ in claimed.items() if id_ in texts]
    return sorted(found, key=lambda one: one.row, reverse=True)


def renew(batch: Iterable[Waiting]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [LEASE_S, [one.row for one in batch]])


def hand_back(batch: Iterable[Waiting], *, is_suspect: bool) -> None:
    """Let whoever is next begin at once. `is_suspect`: these messages may be the reason."""
    with connection.cursor() as cursor:
        cursor.execute(_HAND_BACK, [0 if is_suspect else 1, [one.row for one in batch]])


def keep(batch: Sequence[Waiting], model: EmbeddingModel | None) -> None:
    """Put vectors in the place of what waited; no model: there are none.

    Nothing of a message that has changed or gone since, nor of one for which another process was
    quicker; one that is being changed at this moment waits on.
    """
    by_row = {one.row: one for one in batch}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, [list(by_row)])
        locked = [id_ for (id_,) in cursor.fetchall()]
        cursor.execute(_TAKE, [list(by_row), locked])
        taken = cursor.fetchall()
        MessageVector.objects.bulk_create(
            MessageVector(
                owner_id=owner,
                conversation_id=conversation,
                message_id=message,
                created_at=created_at,
                start=piece.start,
                end=piece.end,
                model=model,
                vector=HalfVector(list(vector)),
            )
            for row, owner, conversation, message, created_at in taken
            for piece, vector in zip(by_row[row].pieces, by_row[row].vectors, strict=True)
        )


def queue_anew(models: Sequence[EmbeddingModel], limit: int) -> int:
    """Drop vectors of these models, and let their messages wait for others; some `limit` rows at a time.
    Returns of how many messages."""
    ids = [model.pk for model in models]
    if not ids:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_OLD, [ids, limit])
        locked = [id_ for (id_,) in cursor.fetchall()]
        if locked:
            cursor.execute(_QUEUE_ANEW, [locked, ids])
    return len(locked)


def model_of(name: str, dimensions: int, revision: str) -> EmbeddingModel:
    """The row of a model. What retrieval.vectors does where there is none locks its tables a while."""
    known = EmbeddingModel.objects.filter(name=name, revision=revision, dimensions=dimensions)
    return known.first() or embedding_model(name, dimensions, revision)


def others_than(name: str, revision: str) -> list[EmbeddingModel]:
    """All known models but this one. An empty revision: it has not told its own yet."""
    current = {"name": name, "revision": revision} if revision else {"name": name}
    return list(EmbeddingModel.objects.exclude(**current))
