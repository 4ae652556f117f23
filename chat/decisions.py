"""What was decided about texts, written down: many decisions of the same moment in one go."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from chat import cooling
from chat.db import in_db
from chat.gathering import Gathering
from chat.table_rows import as_rows, dumped
from moderation.models import Decision, Review, Strike
from moderation.reviewing import overturned_of

logger = logging.getLogger(__name__)

SOON_S = 0.5

_unmade: list[Callable[[], Decision]] = []
_unwritten: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


async def keep(decision: Decision, points: float = 0.0) -> None:
    """Write a decision, and what it counts against its owner. Raises DatabaseError."""
    await _keeper.ask((decision, points), group=decision.owner_id)


def keep_soon(make: Callable[[], Decision]) -> None:
    """The same for a decision that changed nothing: nobody waits, and the log tells where it fails.
    It is made and written a moment later, in a thread, with those of other people: the answer that it is
    about begins."""
    _unmade.append(make)
    if len(_unmade) == 1:
        task = asyncio.create_task(_keep_unmade())
        _unwritten.add(task)
        task.add_done_callback(_unwritten.discard)


async def _keep_unmade() -> None:
    try:
        await asyncio.sleep(SOON_S)
    finally:  # or whoever comes after a loop that ended would wait for it
        making = _unmade.copy()
        _unmade.clear()
    try:
        await in_db(_insert_of_many)(making)
    except Exception:
        logger.exception("%d decisions of moderation could not be written", len(making))


async def written() -> None:
    """Wait for all that is on its way: before the process ends, and in tests."""
    while _unwritten:
        await asyncio.gather(*_unwritten, return_exceptions=True)


async def overturned(user: str, hashes: Sequence[str]) -> dict[str, set[str]]:
    """What a reviewer lets pass of the user's texts with these hashes: the categories of each."""
    return await in_db(overturned_of)(int(user), hashes)


async def noted(user: str, policy_id: UUID, version: int, ids: Sequence[str]) -> set[str]:
    """Which of these questions this version of a policy was noted to stop."""
    return await in_db(_noted)(user, policy_id, version, ids)


def _noted(user: str, policy_id: UUID, version: int, ids: Sequence[str]) -> set[str]:
    rows = Decision.objects.filter(owner=int(user), policy_id=policy_id, policy_version=version)
    rows = rows.filter(stage="input", message_id__in=list(ids), is_dry_run=False)
    return set(map(str, rows.values_list("message_id", flat=True)))


def forget_old() -> None:
    """Drop decisions whose time is over, but for those that wait for somebody to look at them. In the
    system's scope."""
    ended = timezone.now() - timedelta(days=settings.MODERATION_DAYS)
    rows = Decision.objects.filter(created_at__lt=ended).exclude(review=Review.OPEN)
    while gone := list(rows.values_list("pk", flat=True)[:1000]):
        Decision.objects.filter(pk__in=gone).delete()


async def _keep_all(asked: Sequence[tuple[Decision, float]]) -> list[None]:
    await in_db(_insert)(asked)
    return [None] * len(asked)


def _insert(asked: Sequence[tuple[Decision, float]]) -> None:
    Decision.objects.bulk_create([decision for decision, _ in asked])
    strikes = [
        Strike(owner_id=decision.owner_id, decision=decision, points=points)
        for decision, points in asked
        if points
    ]
    Strike.objects.bulk_create(strikes)
    for strike in strikes:
        cooling.struck(str(strike.owner_id))


_keeper: Gathering[tuple[Decision, float], None] = Gathering(_keep_all)


def _insert_of_many(making: Sequence[Callable[[], Decision]]) -> None:
    given = dumped(as_rows([make() for make in making]))
    with connection.cursor() as cursor:
        cursor.execute("SELECT moderation_keep_decisions(%s)", [given])
