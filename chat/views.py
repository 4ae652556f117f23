"""Pages: the chat, empty or with a conversation. The rest of a page comes over the socket."""

from importlib.metadata import version
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render

from chat import access, history, library_api, made_pictures, personal, usage, values
from chat.announcements import announcement_for
from chat.db import in_db
from chat.document_uploads import most_bytes_of
from chat.document_view import page_url
from chat.errors import NotFound
from chat.personal_api import assistant_values
from chat.rights import rights_of
from chat.search_query import FILTERS
from chat.tools_api import tool_server_values
from chat.usage_api import gauge_value
from inference import BUILTIN

NUM_PAINTED = 12
MAX_SHOWN = 100  # assistants in the picker; all of them are in the settings


async def new_chat(request: HttpRequest) -> HttpResponse:
    """The empty chat."""
    return render(request, "chat/chat.html", await in_db(_page)(request, None))


async def show_chat(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """A conversation; somebody else's is as missing as one that never was."""
    try:
        context = await in_db(_page)(request, conversation_id)
    except NotFound:
        raise Http404 from None
    return render(request, "chat/chat.html", context)


async def print_chat(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The shown branch as a page to be read, which opens the browser's print dialog."""
    try:
        context = await in_db(_printed)(request.user, conversation_id)
    except NotFound:
        raise Http404 from None
    return render(request, "chat/print.html", context)


def _printed(user: Any, conversation_id: UUID) -> dict[str, Any]:
    row = access.conversation_for(user, conversation_id)
    shown = values.message_values(history.shown_branch(history.all_messages(row)))
    there = made_pictures.kept_of(user.pk, (message["parts"] for message in shown))
    for number, message in enumerate(shown, start=1):
        parts = made_pictures.on_page(message["parts"], there, page_url)
        message |= {"number": number, "parts": parts}
    return {"conversation": row, "messages": shown}


def _page(request: HttpRequest, conversation_id: UUID | None) -> dict[str, Any]:
    user: Any = request.user
    conversation: values.Value | None = None
    messages: list[values.Value] = []
    shown: list[values.Value] = []
    path: list[str] = []
    if conversation_id is not None:
        row = access.conversation_for(user, conversation_id)
        rows = history.all_messages(row)
        conversation = values.conversation_summary(row)
        messages = values.message_values(rows)
        wanted = _wanted_message(request)
        path = [str(message.pk) for message in history.branch_through(rows, wanted)]
        painted = set(path) if "all" in request.GET else _painted(path, str(wanted))
        shown = [message for message in messages if message["id"] in painted]
    sidebar = library_api.sidebar(user)
    rights = rights_of(request)
    models = [values.model_value(state) for state in rights.models("chat")]
    default = next((model["name"] for model in models if model["default"]), None)
    chosen = personal.personalisation_of(user)
    servers = tool_server_values(rights)
    return {
        "conversations": [*sidebar["pinned"], *sidebar["items"]],
        "palette_filters": FILTERS,
        "conversation": conversation,
        "messages": shown,
        "is_whole": len(shown) == len(path),
        "models": models,
        "demo_model": BUILTIN,
        "shows_demo": default == BUILTIN,
        "public_shares": settings.PUBLIC_SHARES,
        "may_keep_files": rights.may_keep_files,
        "writes_speech_down": bool(rights.models("transcription")),
        "announcement": announcement_for(request),
        "tool_servers": servers,
        "tells_others": any(server["tells_others"] for server in servers),
        "bootstrap": {
            "user": {"name": str(user), "email": user.email, "tier": user.tier.name},
            "conversation": conversation,
            "sidebar": sidebar,
            # Their text is in their parts, too.
            "messages": [
                {name: value for name, value in message.items() if name != "text"}
                for message in messages
            ],
            "models": models,
            "chosen": {"default": chosen.default_model, "pinned": chosen.pinned_models},
            "assistants": assistant_values(personal.assistants_for(user)[:MAX_SHOWN], user),
            "budgets": [gauge_value(gauge) for gauge in usage.low_gauges(rights)],
            "max_file_bytes": most_bytes_of(rights),
            "csrf": get_token(request),
            "speaks": bool(rights.models("speech")),
        },
    }


def _painted(path: list[str], wanted: str) -> set[str]:
    """Those messages of a branch that a reader sees before the page's modules have drawn the others.

    A thousand in HTML took three seconds until the first was seen. Who reads without modules asks for
    all of them (?all).
    """
    begin = path.index(wanted) - 2 if wanted in path else len(path) - NUM_PAINTED
    begin = max(0, begin)
    return set(path[begin : begin + NUM_PAINTED])


def _wanted_message(request: HttpRequest) -> UUID | None:
    """The message that the address leads to (?m=...)."""
    try:
        return UUID(request.GET.get("m", ""))
    except ValueError:
        return None


async def settings_page(request: HttpRequest) -> HttpResponse:
    """Settings of the signed-in user."""
    return render(request, "settings.html", await in_db(_settings_context)(request))


def _settings_context(request: HttpRequest) -> dict[str, Any]:
    user: Any = request.user
    return {
        "tier": user.tier,
        "may_change_name": user.keeps_own_name,
        "may_change_address": bool(settings.SMTP_HOST) and user.keeps_own_address,
        "models": [values.model_value(state) for state in rights_of(request).models("chat")],
        "version": version("vitrine"),
        "languages": settings.LANGUAGES,
    }
