"""Whose turn it is to work on a version: one process at a time, until it is done or has died.

Every write of a process names the lease owner and does nothing for anybody else (LeaseLost). So a
worker that was thought dead writes nothing beside the one that has taken over. In the system's scope.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import Error, connection, transaction
from django.utils import timezone

from retrieval.models import Version, VersionState

logger = logging.getLogger(__name__)

LEASE_S = 30.0
RENEW_S = 10.0
MAX_ATTEMPTS = 3  # processes that one file may take down

WAITING = """
SELECT id FROM retrieval_version
WHERE state = ANY(%s) AND lease_until < %s AND num_chunks <= %s
"""
_IN_TURN = """
SELECT id FROM (
    SELECT v.id, c.is_for_chats, row_number() OVER (
        PARTITION BY c.owner_id, c.is_for_chats ORDER BY v.created_at, v.id) AS turn
    FROM retrieval_version v JOIN retrieval_collection c ON c.id = v.collection_id
    WHERE v.state = ANY(%s) AND v.lease_until < %s AND v.num_chunks <= %s
) AS waiting WHERE turn <= %s ORDER BY is_for_chats DESC, turn, random() LIMIT %s
"""
_ALL = 2**31 - 1
_TOOK_DOWN = "Reading this file has failed several times. It may be damaged; try to save it anew."


class LeaseLost(Exception):
    """Another process works on this version, or it is gone."""


def find_waiting(
    *states: VersionState, max_chunks: int | None = None, limit: int | None = None
) -> list[UUID]:
    """Those that nobody works on, with `max_chunks` only those that are so small. First what is attached
    to messages, for somebody waits for it; of each owner the oldest in turn, so that a thousand files of
    one hold up nobody else's. Which owner comes first is chance: asked anew after each file, it is fair
    as well."""
    with connection.cursor() as cursor:
        most = _ALL if max_chunks is None else max_chunks
        # Of one owner more than all that are asked for come in no turn: they are not even sorted.
        turns = _ALL if limit is None else limit
        cursor.execute(_IN_TURN, [list(states), timezone.now(), most, turns, limit])
        return [row[0] for row in cursor.fetchall()]


def claim(version_id: UUID, me: str, *states: VersionState) -> Version | None:
    """Take up a version in one of these states. None: somebody has it, or it is not to be had."""
    with transaction.atomic():
        free = Version.objects.select_for_update(skip_locked=True).select_related("document")
        row = free.filter(pk=version_id, state__in=states, lease_until__lt=timezone.now()).first()
        if row is None:
            return None
        # Who let go of it in peace has not died of it.
        row.attempts += bool(row.lease_owner)
        row.lease_owner, row.lease_until = me, _lease_end()
        if row.attempts >= MAX_ATTEMPTS:
            row.state, row.reason = VersionState.FAILED, _TOOK_DOWN
        row.save(update_fields=["attempts", "lease_owner", "lease_until", "state", "reason"])
    return None if row.state == VersionState.FAILED else row


def update(version_id: UUID, me: str, **changes: Any) -> None:
    """Write, and renew the lease. Raises LeaseLost."""
    rows = Version.objects.filter(pk=version_id, lease_owner=me)
    if not rows.update(lease_until=_lease_end(), **changes):
        raise LeaseLost


def hand_on(version_id: UUID, me: str, state: VersionState, **changes: Any) -> None:
    """Write the next state, and let whoever is next begin at once. Raises LeaseLost."""
    now = timezone.now() - timedelta(seconds=1)
    rows = Version.objects.filter(pk=version_id, lease_owner=me)
    if not rows.update(state=state, lease_owner="", lease_until=now, attempts=0, **changes):
        raise LeaseLost


def put_off(version_id: UUID, me: str) -> None:
    """Something failed that this version may be the reason of: others go first, and after MAX_ATTEMPTS
    it is given up. Raises LeaseLost."""
    with transaction.atomic():
        row = Version.objects.select_for_update().filter(pk=version_id, lease_owner=me).first()
        if row is None:
            raise LeaseLost
        row.attempts += 1
        row.lease_owner, row.lease_until = "", _lease_end()
        if row.attempts >= MAX_ATTEMPTS:
            row.state, row.reason = VersionState.FAILED, _TOOK_DOWN
        row.save(update_fields=["attempts", "lease_owner", "lease_until", "state", "reason"])


@contextmanager
def kept(version_id: UUID, me: str) -> Iterator[None]:
    """Within, the lease is renewed by a thread of its own, whatever this one is busy with."""
    is_over = threading.Event()
    context = copy_context()
    thread = threading.Thread(
        target=context.run, args=(_renew, version_id, me, is_over), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _renew(version_id: UUID, me: str, is_over: threading.Event) -> None:
    try:
        while not is_over.wait(RENEW_S):
            try:
                update(version_id, me)
            except LeaseLost:
                return
            except Error:
                logger.warning("a lease could not be renewed, trying again", exc_info=True)
    finally:
        connection.close()


def _lease_end() -> Any:
    return timezone.now() + timedelta(seconds=LEASE_S)
