"""/api for prompts that are sent by themselves."""

from datetime import date, datetime, time
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import AfterValidator, Field

from chat import scheduled_sends, schedules, values
from chat.accepted import accepted
from chat.api_errors import ApiError
from chat.db import in_db
from chat.models import Repeats, Schedule
from chat.rights import rights_of
from chat.strict import Strict, text_of

router = Router()


def _by_the_clock(at: time) -> time:
    if at.tzinfo is not None:
        raise ValueError("says where it is by `zone`")
    return at


ClockTime = Annotated[time, AfterValidator(_by_the_clock)]
Weekday = Annotated[int, Field(ge=1, le=7)]


class _Shared(Strict):
    on: date | None = None
    weekdays: list[Weekday] = Field([], max_length=7)
    day: int = Field(1, ge=1, le=31)
    model: text_of(200) = ""  # type: ignore[valid-type]
    assistant: UUID | None = None
    is_one_chat: bool = True
    conversation: UUID | None = None
    is_on: bool = True


class ScheduleIn(_Shared):
    """`at` is a time by the clocks of `zone`, an IANA name. `on` is the day of `once`; `weekdays` are
    those of `weekly`, 1 is Monday; `day` is that of `monthly`, the last one where a month is shorter.

    With `is_one_chat` each time goes on in the same chat: `conversation`, or else one that the first
    time begins. `assistant` is of chats that it begins; without `model` the chat's answers, the
    assistant's or your usual one."""

    name: text_of(Schedule.MAX_NAME_CHARS, 1)  # type: ignore[valid-type]
    text: text_of(Schedule.MAX_TEXT_CHARS, 1)  # type: ignore[valid-type]
    repeats: Repeats
    at: ClockTime
    zone: text_of(64, 1)  # type: ignore[valid-type]


class ScheduleChange(_Shared):
    name: text_of(Schedule.MAX_NAME_CHARS, 1) | None = None  # type: ignore[valid-type]
    text: text_of(Schedule.MAX_TEXT_CHARS, 1) | None = None  # type: ignore[valid-type]
    repeats: Repeats | None = None
    at: ClockTime | None = None
    zone: text_of(64, 1) | None = None  # type: ignore[valid-type]
    version: int | None = None


@router.get("/schedules")
async def list_schedules(request: HttpRequest) -> dict[str, Any]:
    """Yours, those first that are sent next."""
    rows = await in_db(lambda: list(schedules.schedules_of(request.user)))()
    return {"items": [schedule_value(row) for row in rows]}


@router.post("/schedules", response={201: dict})
async def create_schedule(request: HttpRequest, data: ScheduleIn) -> tuple[int, dict[str, Any]]:
    """Send a prompt by itself, from now on. What was missed while the server was down is made up for
    once; it is answered behind what people wait for, within the limits of your plan. Not for an API key
    that has limits of its own, which would not hold then."""
    _require_no_limits_of_key(request)
    row = await in_db(schedules.create_schedule)(request.user, **_fields(data))
    return 201, schedule_value(row)


@router.get("/schedules/{schedule_id}")
async def show_schedule(request: HttpRequest, schedule_id: str) -> dict[str, Any]:
    return schedule_value(await in_db(schedules.schedule_for)(request.user, schedule_id))


@router.patch("/schedules/{schedule_id}")
async def change_schedule(
    request: HttpRequest, schedule_id: str, data: ScheduleChange
) -> dict[str, Any]:
    _require_no_limits_of_key(request)
    change = in_db(schedules.change_schedule)
    return schedule_value(await change(request.user, schedule_id, data.version, **_fields(data)))


@router.delete("/schedules/{schedule_id}", response={204: None})
async def delete_schedule(request: HttpRequest, schedule_id: str) -> tuple[int, None]:
    """Send it no more. Its chats stay."""
    await in_db(schedules.delete_schedule)(request.user, schedule_id)
    return 204, None


@router.post("/schedules/{schedule_id}/send", response={201: dict})
async def send_schedule(request: HttpRequest, schedule_id: str) -> tuple[int, dict[str, Any]]:
    """Send it now, beside its times; also one that is off. The answer is written by the `run`."""
    row = await in_db(schedules.schedule_for)(request.user, schedule_id)
    sent = await scheduled_sends.send_now(rights_of(request), row)
    return 201, {"run": str(sent.generation.pk), **await accepted(sent)}


def _require_no_limits_of_key(request: HttpRequest) -> None:
    """Raises ApiError."""
    if rights_of(request).is_narrowed:
        text = "An API key with models or limits of its own makes and changes no schedules."
        raise ApiError(403, "not_allowed", text)


def _fields(data: ScheduleIn | ScheduleChange) -> dict[str, Any]:
    """What the body has set, by the names of the row."""
    names = data.model_fields_set - {"version"}
    nullable = {"on", "assistant", "conversation"}
    set_ = {n: getattr(data, n) for n in names if n in nullable or getattr(data, n) is not None}
    own = {"assistant": "assistant_id", "conversation": "conversation_id"}
    return {own.get(name, name): value for name, value in set_.items()}


def schedule_value(row: Schedule) -> values.Value:
    return {
        "id": str(row.pk),
        "name": row.name,
        "text": row.text,
        "repeats": row.repeats,
        "at": row.at.isoformat("minutes"),
        "zone": row.zone,
        "on": row.on.isoformat() if row.on else None,
        "weekdays": row.weekdays,
        "day": row.day,
        "model": row.model,
        "assistant": str(row.assistant_id) if row.assistant_id else None,
        "is_one_chat": row.is_one_chat,
        "conversation": str(row.conversation_id) if row.conversation_id else None,
        "is_on": row.is_on,
        "next_at": _moment(row.next_at),
        "last_at": _moment(row.last_at),
        "last_problem": row.last_problem,
        "version": row.version,
        "created_at": _moment(row.created_at),
    }


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
