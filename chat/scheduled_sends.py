"""What is due is sent as its owner's message, and answered behind whatever anybody waits for.

Each time has a client id of its own, so that it is one message, whoever sends it and however often: a
process that dies between the message and the note that it is sent leaves it to the next one, which finds
the message there. What was missed while nothing ran is made up for once.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext

from chat import answers, notices, runs
from chat.actions import Draft, Sent
from chat.db import in_db
from chat.draining import is_draining
from chat.errors import (
    BeyondBudget,
    BudgetSpent,
    ChatError,
    Conflict,
    ShuttingDown,
    TooManyRequests,
    TooManyRuns,
)
from chat.ids import uuid7
from chat.models import Conversation, Schedule
from chat.persisting import AWAY
from chat.rights import Rights
from chat.scheduled_draft import draft_of
from chat.schedules import rhythm_of
from inference import EngineError

logger = logging.getLogger(__name__)

DUE = """
SELECT id, owner_id FROM chat_schedule
WHERE is_on AND next_at <= %s AND wait_until <= %s ORDER BY next_at LIMIT 100
"""
MAX_AT_ONCE = 8  # answers of schedules that this process is writing
MAX_OF_ONE = 3  # of these, of one owner's: a tool that waits for a yes takes its time
AGAIN = timedelta(seconds=30)  # where something was in the way
SOON = timedelta(seconds=5)
MAX_TRIES = 120  # for an hour
MAX_FAILED = 5  # times in a row that nothing but its owner can change, and it is switched off

_writing: dict[UUID, Any] = {}  # the owner of each


@dataclass(frozen=True, slots=True)
class _Due:
    row: Schedule
    at: datetime
    rights: Rights

    @property
    def client_id(self) -> str:
        return f"{self.row.pk.hex}-{int(self.at.timestamp())}"


def find_due() -> list[tuple[UUID, Any]]:
    """(schedule id, owner id), who waits longest first. Needs the system's scope."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [timezone.now()] * 2)
        return [(id_, owner_id) for id_, owner_id in cursor.fetchall()]


async def send_due(schedule_id: UUID) -> bool:
    """Send it, if it is still due. In the scope of its owner. False: not now, nor are others."""
    _forget_ended()
    if is_draining() or len(_writing) >= MAX_AT_ONCE:
        return False
    due = await in_db(_due)(schedule_id)
    if due is None:
        return True
    with translation.override(_language_of(due.row.owner)):
        return await _send(due)


async def _send(due: _Due) -> bool:
    try:
        await _send_and_note(due)
    except ShuttingDown:
        return False
    except AWAY:
        raise
    except (ChatError, EngineError) as error:
        await in_db(_not_sent)(due, error)
    except Exception:
        logger.exception("schedule %s could not be sent", due.row.pk)
        await in_db(_not_sent)(due, _Broken())
    return True


async def _send_and_note(due: _Due) -> None:
    if not due.rights.user.is_active:
        raise Refused(gettext("The account may not ask anything."))
    if list(_writing.values()).count(due.row.owner_id) >= MAX_OF_ONE:
        await in_db(_wait_for_own)(due.row)
        return
    draft = await in_db(draft_of)(due.rights, due.row, due.client_id)
    sent = await answers.send(due.rights, draft)
    _writing[sent.generation.pk] = due.row.owner_id
    if await in_db(_sent)(due, draft, sent):
        await notices.conversation_changed(due.row.owner_id, sent.conversation.pk)


async def send_now(rights: Rights, row: Schedule) -> Sent:
    """Beside its times, as somebody waits for it. Raises as `answers.send`."""
    draft = await in_db(draft_of)(rights, row, f"now-{uuid7().hex}")
    sent = await answers.send(rights, draft)
    if draft.conversation_id is None:
        await in_db(_keep_chat)(row, sent, timezone.now())
        await notices.conversation_changed(rights.user.pk, sent.conversation.pk)
    return sent


class Refused(ChatError):
    code = "not_allowed"
    status = 403


class _Broken(ChatError):
    """A fault of ours, which may have to do with this one alone: the others are not to wait for it."""

    code = "server_error"
    status = 503

    def __init__(self) -> None:
        super().__init__(gettext("Something went wrong on our side."))


def _forget_ended() -> None:
    for run_id in list(_writing):
        run = runs.get(run_id)
        if run is None or not run.is_running:
            del _writing[run_id]


def _language_of(user: Any) -> str:
    return user.language or settings.LANGUAGE_CODE


def _due(schedule_id: UUID) -> _Due | None:
    now = timezone.now()
    rows = Schedule.objects.filter(pk=schedule_id, is_on=True, next_at__lte=now)
    row = rows.filter(wait_until__lte=now).first()
    if row is None or row.next_at is None:
        return None
    user: Any = get_user_model()._default_manager.get(pk=row.owner_id)
    row.owner = user
    return _Due(row, row.next_at, Rights(user, is_background=True))


# --- what became of it ------------------------------------------------------------------------------


def _sent(due: _Due, draft: Draft, sent: Sent) -> bool:
    """Note it, and when the next one is due. Whether the chat has got its name."""
    with transaction.atomic():
        row = _still(due)
        if row is None:
            return False
        row.last_at, row.last_problem, row.num_failed = timezone.now(), "", 0
        _go_on(row)
        if draft.conversation_id is not None:
            return False
        _keep_chat(row, sent, due.at)
        return True


def _not_sent(due: _Due, error: Exception) -> None:
    if _may_pass(error) and due.row.num_tries < MAX_TRIES:
        _put_off(due.row, error)
        return
    with transaction.atomic():
        row = _still(due)
        if row is None:
            return
        logger.info("schedule %s was not sent: %s", row.pk, error)
        row.last_problem = str(error)[: Schedule._meta.get_field("last_problem").max_length]
        row.num_failed += not _is_over_some_day(error)
        row.is_on = row.num_failed < MAX_FAILED
        _go_on(row)


def _put_off(row: Schedule, error: Exception) -> None:
    """With all that are due of its owner, where it is the plan that has no room: each try is a request,
    and would be one less of those that its owner may make."""
    now = timezone.now()
    rows = Schedule.objects.filter(is_on=True, next_at__lte=now, wait_until__lte=now)
    is_of_plan = isinstance(error, (TooManyRuns, TooManyRequests))
    rows = rows.filter(owner_id=row.owner_id) if is_of_plan else rows.filter(pk=row.pk)
    rows.update(wait_until=now + AGAIN, num_tries=F("num_tries") + 1)


def _wait_for_own(row: Schedule) -> None:
    """All that are due of its owner, until some have ended. No try was in vain."""
    now = timezone.now()
    rows = Schedule.objects.filter(owner_id=row.owner_id, is_on=True, next_at__lte=now)
    rows.filter(wait_until__lte=now).update(wait_until=now + SOON)


def _still(due: _Due) -> Schedule | None:
    """The row, locked. None: somebody has noted it already, or it was changed or deleted meanwhile."""
    rows = Schedule.objects.select_for_update().filter(pk=due.row.pk, is_on=True)
    return rows.filter(next_at=due.at).first()


def _go_on(row: Schedule) -> None:
    """The next time lies ahead, whatever was missed."""
    try:
        row.next_at = rhythm_of(row).next_after(timezone.now()) if row.is_on else None
    except ZoneInfoNotFoundError:  # which there was when it was chosen
        row.next_at, row.last_problem = None, gettext("There is no such time zone.")
    row.is_on, row.num_tries = row.next_at is not None, 0
    row.save(
        update_fields=["is_on", "next_at", "last_at", "last_problem", "num_failed", "num_tries"]
    )


def _may_pass(error: Exception) -> bool:
    """Whether the same may be asked in a moment."""
    if isinstance(error, BudgetSpent):
        return error.retry_after_s is not None and error.retry_after_s < AGAIN.total_seconds()
    return isinstance(error, Conflict) or getattr(error, "status", 0) in (429, 503)


def _is_over_some_day(error: Exception) -> bool:
    """Without anybody's doing, as a budget that is spent until the next month."""
    return isinstance(error, BudgetSpent) and not isinstance(error, BeyondBudget)


def _keep_chat(row: Schedule, sent: Sent, at: datetime) -> None:
    """A chat that it has begun is called by its name, one of many with the day as well."""
    title = row.name
    if not row.is_one_chat:
        title = f"{row.name} · {date_format(_by_its_clock(row, at), 'SHORT_DATE_FORMAT')}"
    Conversation.objects.filter(pk=sent.conversation.pk).update(title=title, title_by_hand=True)
    Schedule.objects.filter(pk=row.pk).update(conversation=sent.conversation.pk)


def _by_its_clock(row: Schedule, at: datetime) -> datetime:
    try:
        return at.astimezone(ZoneInfo(row.zone))
    except ZoneInfoNotFoundError:  # as in `_go_on`
        return at
