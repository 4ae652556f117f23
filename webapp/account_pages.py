"""Settings pages about the account itself, beside those of the chat (chat/personal_pages.py)."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp import sign_ins


@never_cache
@require_http_methods(["GET", "POST"])
def sessions(request: HttpRequest) -> HttpResponse:
    """Where this person is signed in; one sign-in can be ended, or all others."""
    user: Any = request.user
    key = request.session.session_key
    if request.method == "POST":
        if "others" in request.POST:
            sign_ins.end_other_sign_ins(user, key)
            messages.success(request, _("Every other browser is signed out."))
        elif sign_ins.end_sign_in(user, _number(request.POST.get("end", ""))):
            messages.success(request, _("That browser is signed out."))
        return redirect("sessions")
    context = {
        "heading": _("Signed in"),
        "about": _(
            "The browsers in which you are signed in. One that you do not know may be somebody else's:"
            " sign it out, and change your password."
        ),
        "here": "security",
        "sign_ins": sign_ins.sign_ins_of(user, key),
    }
    return render(request, "settings/sessions.html", context)


def _number(text: str) -> int:
    """0, which no row has, for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
