"""Settings pages of scheduled prompts: plain forms, which need no JavaScript."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format, time_format
from django.utils.translation import gettext

from chat import access, personal, scheduled_sends, schedules, values
from chat.db import in_db
from chat.errors import ChatError, NotFound
from chat.form_pages import form_page, is_saved, page_in_db
from chat.models import Message, Repeats, Schedule
from chat.rights import rights_of
from chat.schedule_forms import ScheduleForm
from inference import EngineError

_SHOWN = (
    *("name", "text", "repeats", "on", "day", "at", "zone"),
    *("is_one_chat", "model", "is_on", "version"),
)


@page_in_db
def schedule_list(request: HttpRequest) -> HttpResponse:
    rows = list(schedules.schedules_of(request.user))
    chats = _chats_of(request.user, rows)
    shown = [
        {"row": row, "when": when(row), "chat": chats.get(str(row.conversation_id))} for row in rows
    ]
    context = {"rows": shown, "heading": gettext("Scheduled prompts"), "here": "schedules"}
    return render(request, "settings/schedules.html", context)


@page_in_db
def new_schedule(request: HttpRequest) -> HttpResponse:
    """`message` is one of one's own that it is to say again, in its chat."""
    message = _message_asked_for(request)
    chat = message.conversation if message else None
    initial: dict[str, Any] = {"repeats": Repeats.DAILY, "at": "08:00", "day": 1}
    initial |= {"is_one_chat": True, "is_on": True}
    if message is not None:
        initial |= {
            "name": message.conversation.title[: Schedule.MAX_NAME_CHARS],
            "text": message.text,
        }
    form = _form_for(request, initial)

    def save(_: dict[str, Any]) -> None:
        fields = form.fields_of_row()
        if chat is not None and fields["is_one_chat"]:
            fields["conversation_id"] = chat.pk
        schedules.create_schedule(request.user, **fields)

    if is_saved(request, form, save):
        return redirect("schedules")
    about = gettext("It goes on in “%(name)s”.") % {"name": chat.title} if chat else ""
    heading = gettext("New scheduled prompt")
    return _page(request, form, heading, about=about)


@page_in_db
def edit_schedule(request: HttpRequest, schedule_id: UUID) -> HttpResponse:
    row = schedules.schedule_for(request.user, schedule_id)
    if "delete" in request.POST:
        schedules.delete_schedule(request.user, schedule_id)
        messages.success(request, gettext("%(name)s is deleted.") % {"name": row.name})
        return redirect("schedules")
    initial = {name: getattr(row, name) for name in _SHOWN}
    initial["weekdays"] = [str(number) for number in row.weekdays]
    initial["assistant"] = str(row.assistant_id) if row.assistant_id else ""
    form = _form_for(request, initial)

    def save(fields: dict[str, Any]) -> None:
        changes = form.fields_of_row()
        schedules.change_schedule(request.user, schedule_id, fields["version"], **changes)

    if is_saved(request, form, save):
        return redirect("schedules")
    return _page(request, form, row.name, may_delete=True)


async def send_schedule(request: HttpRequest, schedule_id: UUID) -> HttpResponse:
    """Send it now, and go where it is answered."""
    try:
        row = await in_db(schedules.schedule_for)(request.user, schedule_id)
    except NotFound:
        raise Http404 from None
    if request.method != "POST":
        return redirect("schedules")
    try:
        sent = await scheduled_sends.send_now(rights_of(request), row)
    except (ChatError, EngineError) as error:
        await in_db(messages.error)(request, str(error))
        return redirect("schedules")
    return redirect("chat", conversation_id=sent.conversation.pk)


def when(row: Schedule) -> str:
    """Its times in words: "Mon, Wed, 08:00"."""
    at = time_format(row.at, "TIME_FORMAT")
    match row.repeats:
        case Repeats.ONCE:
            return f"{date_format(row.on, 'DATE_FORMAT')}, {at}" if row.on else at
        case Repeats.WEEKLY:
            days = ", ".join(str(WEEKDAYS_ABBR[number - 1]) for number in row.weekdays)
            return f"{days}, {at}"
        case Repeats.MONTHLY:
            words = gettext("On day %(day)s of every month, %(time)s")
            return words % {"day": row.day, "time": at}
    return gettext("Every day, %(time)s") % {"time": at}


def _form_for(request: HttpRequest, initial: dict[str, Any]) -> ScheduleForm:
    models = [(state.spec.name, state.spec.title) for state in rights_of(request).models("chat")]
    rows = personal.assistants_for(request.user)
    return ScheduleForm(
        request.POST or None,
        initial=initial,
        models=models,
        assistants=[(str(row.pk), row.name) for row in rows],
    )


def _page(request: HttpRequest, form: ScheduleForm, heading: str, **more: Any) -> HttpResponse:
    template = "settings/schedule_form.html"
    return form_page(request, form, heading, here="schedules", template=template, **more)


def _message_asked_for(request: HttpRequest) -> Message | None:
    """Raises NotFound."""
    asked = request.GET.get("message")
    return access.message_for(request.user, asked) if asked else None


def _chats_of(user: Any, rows: list[Schedule]) -> dict[str, values.Value]:
    """Those that are there, by id."""
    ids = [row.conversation_id for row in rows if row.conversation_id]
    found = list(access.conversations_of(user).filter(pk__in=ids))
    return {chat["id"]: chat for chat in values.conversation_summaries(found)}
