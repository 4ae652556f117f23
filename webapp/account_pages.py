"""Settings pages about the account itself, beside those of the chat (chat/personal_pages.py)."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp import sign_ins
from webapp.error_pages import error_page
from webapp.forms import NameForm


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


@never_cache
@require_http_methods(["GET", "POST"])
def change_name(request: HttpRequest) -> HttpResponse:
    """Not where a directory keeps it."""
    user: Any = request.user
    if not user.keeps_own_name:
        words = _("Your name is kept in the directory of your organisation, and changes there.")
        return error_page(request, 403, words)
    form = NameForm(request.POST or None, initial={"name": user.name})
    if request.method == "POST" and form.is_valid():
        user.name = form.cleaned_data["name"]
        user.save(update_fields=["name"])
        messages.success(request, _("Saved."))
        return redirect("change-name")
    context = {"form": form, "heading": _("Your name"), "here": "account"}
    return render(request, "settings/name.html", context, status=400 if form.errors else 200)


def _number(text: str) -> int:
    """0, which no row has, for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
