"""The settings page of what is remembered: plain forms; static/js/memory-page.js spares reloads."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from chat import memories, personal
from chat.db import in_db
from chat.errors import ChatError, NotFound
from chat.models import Memory


async def memory_page(request: HttpRequest) -> HttpResponse:
    try:
        return await in_db(_page)(request)
    except NotFound:
        raise Http404 from None


def _page(request: HttpRequest) -> HttpResponse:
    problem = ""
    if request.method == "POST":
        try:
            messages.success(request, _act(request))
            return redirect("memory")
        except NotFound:
            raise
        except ChatError as error:
            problem = str(error)
    rows = list(memories.memories_of(request.user).reverse())
    context = {
        "rows": rows,
        "heading": gettext("Memory"),
        "here": "memory",
        "uses_memories": personal.personalisation_of(request.user).uses_memories,
        "problem": problem,
        "written": request.POST.get("text", "") if problem else "",
        "max_chars": Memory.MAX_CHARS,
        "max_memories": memories.MAX_MEMORIES,
    }
    return render(request, "settings/memory.html", context, status=400 if problem else 200)


def _act(request: HttpRequest) -> str:
    """Do what was asked, and say so. Raises ChatError."""
    user: Any = request.user
    sent = request.POST
    match sent.get("act"):
        case "switch":
            personal.save_personalisation(user, None, uses_memories="is_on" in sent)
        case "change":
            memories.put_memory(user, sent.get("memory"), sent.get("text", ""))
        case "forget":
            memories.forget(user, sent.get("memory"))
            return gettext("It is forgotten.")
        case "forget-all":
            memories.forget_all(user)
            return gettext("All is forgotten.")
        case _:
            memories.remember(user, sent.get("text", ""))
    return gettext("Saved.")
