"""Reads and writes of scheduled prompts by their owner, each in one transaction."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from chat import access, personal
from chat.answer_rows import user_now
from chat.errors import BadRequest, TooMany
from chat.models import Repeats, Schedule
from chat.schedule_times import Rhythm, is_zone
from chat.storable import is_storable

MAX_SCHEDULES = 50  # of one user
LONGEST_AHEAD = timedelta(days=3660)


def schedules_of(user: Any) -> QuerySet[Schedule]:
    """Those that will be sent first, then those that are off, by name."""
    return Schedule.objects.filter(owner_id=user.pk).order_by("-is_on", "next_at", "name", "id")


def schedule_for(user: Any, schedule_id: object, *, lock: bool = False) -> Schedule:
    """Raises NotFound."""
    rows = schedules_of(user)
    return personal.found(rows.select_for_update() if lock else rows, schedule_id, "schedule")


def create_schedule(user: Any, **fields: Any) -> Schedule:
    """Raises BadRequest, NotFound (an assistant), TooMany, SignedOut."""
    with transaction.atomic():
        now = user_now(user)
        if schedules_of(now).count() >= MAX_SCHEDULES:
            raise TooMany(MAX_SCHEDULES)
        row = Schedule(owner_id=now.pk, **fields)
        _set_right(now, row, fields)
        row.save(force_insert=True)
        return row


def change_schedule(
    user: Any, schedule_id: object, version: int | None, **changes: Any
) -> Schedule:
    """Raises as `create_schedule`, and Conflict. Who changes one gives it another chance."""
    with transaction.atomic():
        row = schedule_for(user, schedule_id, lock=True)
        personal.check_version(row, version)
        before = rhythm_of(row)
        for name, value in changes.items():
            setattr(row, name, value)
        _set_right(user, row, changes, before)
        row.version += 1
        row.num_failed, row.num_tries, row.last_problem = 0, 0, ""
        row.wait_until = timezone.now()
        row.save()
        return row


def delete_schedule(user: Any, schedule_id: object) -> None:
    """Its chats stay, and what is being written in them goes on. Raises NotFound."""
    schedule_for(user, schedule_id).delete()


def rhythm_of(row: Schedule) -> Rhythm:
    return Rhythm(row.repeats, row.at, row.zone, row.on, tuple(row.weekdays), row.day)


def _set_right(
    user: Any, row: Schedule, changes: Mapping[str, Any], before: Rhythm | None = None
) -> None:
    """Its values, and when it is due: where the rhythm is as `before`, as before, so that what waits is
    sent all the same. Raises BadRequest, NotFound."""
    row.name, row.text = row.name.strip(), row.text.strip()
    if not row.name or not row.text:
        raise BadRequest(gettext("A scheduled prompt has a name and a text."))
    if not is_storable(row.name + row.text):
        raise BadRequest(gettext("The text holds a character that cannot be stored."))
    if changes.get("assistant_id"):
        personal.assistant_for(user, row.assistant_id)
    if "conversation_id" in changes and row.conversation_id is not None:
        access.conversation_for(user, row.conversation_id)
    _check_rhythm(row)
    if row.is_on and (row.next_at is None or rhythm_of(row) != before):
        row.next_at = _next(row)
    elif not row.is_on:
        row.next_at = None


def _check_rhythm(row: Schedule) -> None:
    if not is_zone(row.zone):
        raise BadRequest(gettext("There is no such time zone."))
    if row.repeats == Repeats.WEEKLY and not row.weekdays:
        raise BadRequest(gettext("Choose a day of the week."))
    if row.repeats == Repeats.ONCE and row.on is None:
        raise BadRequest(gettext("Choose the day on which it is to be sent."))
    row.weekdays = sorted(set(row.weekdays))
    row.at = row.at.replace(second=0, microsecond=0)


def _next(row: Schedule) -> datetime:
    now = timezone.now()
    if row.on is not None and row.repeats == Repeats.ONCE and _is_too_far(row.on, now):
        raise BadRequest(gettext("This is more than ten years ahead."))
    found = rhythm_of(row).next_after(now)
    if found is None:
        raise BadRequest(gettext("This time is over."))
    return found


def _is_too_far(day: date, now: datetime) -> bool:
    return day > (now + LONGEST_AHEAD).date()
