"""Pages: the chat, empty or with a conversation. The rest of a page comes over the socket."""

from importlib.metadata import version
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render

from chat import access, values
from chat.db import in_db
from chat.engine import engine
from chat.errors import NotFound
from chat.models import Message
from chat.rest import PAGE_SIZE


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
    if conversation_id is not None:
        row = access.conversation_for(user, conversation_id)
        conversation = values.conversation_summary(row)
        messages = values.message_values(
            Message.objects.filter(conversation=row).order_by("created_at", "id")
        )
    conversations = values.conversation_summaries(access.conversations_of(user)[:PAGE_SIZE])
    models = [values.model_value(state) for state in engine().models()]
    return {
        "conversations": conversations,
        "conversation": conversation,
        "messages": messages,
        "models": models,
        "bootstrap": {
            "user": {"name": str(user), "email": user.email, "tier": user.tier.name},
            "conversation": conversation,
            "conversations": conversations,
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
        "models": [values.model_value(state) for state in engine().models()],
        "version": version("vitrine"),
    }
