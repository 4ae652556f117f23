"""How many answers of one user are written at the same time: Tier.concurrent_runs.

Those of chats are runs with a status. All others, of /v1 and of temporary chats, are known by what they
hold of the budget (Reservation), which is let go when they are settled; one whose process died counts
until its lease ends. All is counted in Postgres, while the user's row is locked: so of any number that
begin at once, in whatever processes, no more than the tier has go through, and there is nothing that
would have to be counted otherwise while Redis is away.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.db import Error, connection
from django.db.models import Case, Value, When
from django.utils import timezone

from chat.db import in_db
from chat.errors import TooManyRuns
from chat.models import Reservation
from chat.rights import Rights

logger = logging.getLogger(__name__)

LEASE_S = 30.0  # how long an answer of a process that died keeps its place
RENEW_S = 10.0  # most answers take less, and are never renewed

_NUM_RUNNING = "SELECT chat_num_running(%s, %s)"


def check_concurrent_runs(rights: Rights, num_more: int = 1) -> None:
    """Raises TooManyRuns when there is no room for so many more answers. One query.

    The caller holds the user's row.
    """
    if num_free(rights) < num_more:
        raise TooManyRuns(rights.user.tier.concurrent_runs)


def num_free(rights: Rights) -> int:
    """For how many more answers there is room; below zero, where the tier has been given less since.

    One query, and none of Django's making: each answer begins with it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NUM_RUNNING, [rights.user.pk, timezone.now()])
        (num_running,) = cursor.fetchone()
    return int(rights.concurrent_runs - num_running)


def lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_S)


def renew(run_id: UUID) -> None:
    """Of an answer that counts, its place as well."""
    end = lease_end()
    place = Case(When(alive_until__isnull=False, then=Value(end)))
    Reservation.objects.filter(pk=run_id).update(expires_at=end, alive_until=place)


@contextmanager
def kept_alive(run_id: UUID) -> Iterator[None]:
    """Within, what is asked keeps what it holds, and an answer its place. On an event loop; most answers
    are over before there is a task for it."""
    loop = asyncio.get_running_loop()
    renewing: list[asyncio.Task[None]] = []
    timer = loop.call_later(RENEW_S, lambda: renewing.append(loop.create_task(_renew_on(run_id))))
    try:
        yield
    finally:
        timer.cancel()
        for task in renewing:
            task.cancel()


async def _renew_on(run_id: UUID) -> None:
    while True:
        try:
            await in_db(renew)(run_id)
        except Error:
            logger.warning("a running answer could not be renewed, trying again", exc_info=True)
        await asyncio.sleep(RENEW_S)
