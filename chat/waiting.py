"""What waits for a process to work on it: answers, batches, documents, messages, schedules.
Synchronous, in the system's scope.

One statement asks for all of it, since it is asked twice a second though nothing waits.
"""

from enum import StrEnum
from typing import Any

from django.db import connection
from django.utils import timezone

from chat import batch_rows, message_vectors, recovery, scheduled_sends
from chat.models import UNFINISHED_BATCHES
from retrieval import version_leases
from retrieval.models import VersionState


class Waits(StrEnum):
    ANSWERS = "answers"
    BATCHES = "batches"
    DOCUMENTS = "documents"
    MESSAGES = "messages"
    SCHEDULES = "schedules"


def waiting() -> frozenset[Waits]:
    """Which kinds of work nobody does yet."""
    now, most = timezone.now(), 2**31 - 1
    asked: dict[Waits, tuple[str, list[Any]]] = {
        Waits.ANSWERS: (recovery.LOST, [now]),
        Waits.BATCHES: (batch_rows.WAITING, [list(UNFINISHED_BATCHES), now]),
        Waits.DOCUMENTS: (version_leases.WAITING, [[VersionState.EMBEDDING], now, most]),
        Waits.MESSAGES: (message_vectors.WAITING, [message_vectors.MAX_ATTEMPTS]),
        Waits.SCHEDULES: (scheduled_sends.DUE, [now, now]),
    }
    parts = [f"SELECT '{kind}' WHERE EXISTS ({query})" for kind, (query, _) in asked.items()]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), [v for _, own in asked.values() for v in own])
        return frozenset(Waits(row[0]) for row in cursor.fetchall())
