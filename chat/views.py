"""Pages: the chat, empty or with a conversation. The rest of a page comes over the socket."""

from importlib.metadata import version
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render

from chat import access, history, values
from chat.db import in_db
from chat.engine import engine
from chat.errors import NotFound


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


def _page(request: HttpRequest, conversation_id: UUID | None) -> dict[str, Any]:
    user: Any = request.user
    conversation: values.Value | None = None
    messages: list[values.Value] = []
    shown: list[values.Value] = []
    if conversation_id is not None:
        row = access.conversation_for(user, conversation_id)
        rows = history.all_messages(row)
        conversation = values.conversation_summary(row)
        messages = values.message_values(rows)
        # The path to the newest message: what the page's modules will show as well.
        path = {str(m.pk) for m in history.branch(rows, rows[-1].pk if rows else None)}
        shown = [message for message in messages if message["id"] in path]
    page = history.conversation_page(user)
    conversations = values.conversation_summaries(page.conversations)
    models = [values.model_value(state) for state in engine().models("chat")]
    return {
        "conversations": conversations,
        "conversation": conversation,
        "messages": shown,
        "models": models,
        "bootstrap": {
            "user": {"name": str(user), "email": user.email, "tier": user.tier.name},
            "conversation": conversation,
            "conversations": conversations,
            "next": page.next_cursor,
            "messages": messages,
            "models": models,
            "csrf": get_token(request),
        },
    }


async def settings_page(request: HttpRequest) -> HttpResponse:
    """Settings of the signed-in user."""
    return render(request, "settings.html", await in_db(_settings_context)(request))


def _settings_context(request: HttpRequest) -> dict[str, Any]:
    user: Any = request.user
    return {
        "tier": user.tier,
        "models": [values.model_value(state) for state in engine().models("chat")],
        "version": version("vitrine"),
    }
