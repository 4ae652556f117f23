"""The page where somebody who has an account connects it with the directory, and the guard of pages
that people of the directory have no use for."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate
from django import forms
from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from webapp.directory_links import is_of_directory
from webapp.directory_people import connect
from webapp.error_pages import error_page
from webapp.rate_limits import limited

View = Callable[..., HttpResponseBase]


def not_of_directory(view: View) -> View:
    """Refuse, in words, who has what this page changes in the directory."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and is_of_directory(request.user):
            words = _(
                "Your name, e-mail address and password are kept in the directory of your organisation,"
                " and change there."
            )
            return error_page(request, 403, words)
        return view(request, *args, **kwargs)

    return wrapped


class ConnectForm(forms.Form):
    login = forms.CharField(
        label=gettext_lazy("User name in the directory"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", "spellcheck": "false"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Password in the directory"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def clean(self) -> dict[str, Any]:
        from webapp.directory_sign_in import prove  # brings ldap3, which most sites do not need

        cleaned = super().clean() or {}
        if not self.errors:
            entry = prove(cleaned["login"], cleaned["password"])
            if entry is None:
                raise ValidationError(_("The user name or the password is wrong."))
            self.entry = entry
        return cleaned


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
@limited("login")
def connect_page(request: HttpRequest) -> HttpResponseBase:
    """Both sides are proved: the account by its own means, lately, and the entry by its password."""
    if settings.DIRECTORY is None:
        raise Http404
    if request.method == "POST" and not did_recently_reauthenticate(request):
        return redirect("directory_connect")  # allauth would keep the form, with the password
    page: HttpResponseBase = _proved_page(request)
    return page


@reauthentication_required(allow_get=False)  # type: ignore[untyped-decorator]
def _proved_page(request: HttpRequest) -> HttpResponse:
    form = ConnectForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _connected(request, form):
        return redirect("mfa_index")
    context = {"form": form, "heading": _("Directory"), "here": "security"}
    return render(request, "settings/directory.html", context)


def _connected(request: HttpRequest, form: ConnectForm) -> bool:
    user: Any = request.user
    try:
        connect(user, form.entry)
    except ValidationError as error:
        form.add_error(None, error)
        return False
    user.refresh_from_db()
    update_session_auth_hash(
        request, user
    )  # the local password is gone, and other sessions with it
    return True
