"""The settings page of what policies have stopped, where it can be appealed."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from chat import stopped
from chat.db import in_db
from chat.errors import NotFound
from moderation.reviewing import MAX_APPEAL_CHARS, CannotAppeal


@require_http_methods(["GET", "POST"])
async def stopped_page(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        id_, text = request.POST.get("decision", ""), request.POST.get("text", "")
        try:
            await in_db(stopped.appeal_against)(request.user, id_, text)
        except NotFound:
            messages.error(request, gettext("There is no such decision."))
        except CannotAppeal:
            messages.error(request, gettext("This could not be sent: write a few words, and once."))
        else:
            messages.success(request, gettext("Somebody will look at it."))
        return redirect("stopped")
    return render(request, "settings/stopped.html", await in_db(_context)(request.user))


def _context(user: Any) -> dict[str, Any]:
    rows = stopped.decisions_of(user)
    return {
        "heading": gettext("Stopped by a policy"),
        "about": gettext(
            "Questions and answers of yours that a policy has stopped or changed. If one was wrong, say"
            " why: a person will look at it."
        ),
        "here": "stopped",
        "decisions": [(row, stopped.words_for(row)) for row in rows],
        "max_chars": MAX_APPEAL_CHARS,
    }
