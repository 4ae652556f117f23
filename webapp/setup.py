"""The first administrator: made through a one-time link that the console prints."""

import secrets
from hashlib import sha256
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView

from webapp.error_pages import error_page
from webapp.forms import SetupForm
from webapp.models import SetupToken, User
from webapp.rate_limits import limited

_BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


class SetupClosed(Exception):
    """The link is not, or no longer, valid."""


def issue_setup_token() -> str | None:
    """A new token, which ends the validity of an earlier one; None once there is an administrator.

    Only its hash is kept, so a token cannot be shown a second time.
    """
    if User.objects.has_administrator():
        SetupToken.objects.all().delete()
        return None
    token = secrets.token_urlsafe(24)
    SetupToken.objects.update_or_create(pk=1, defaults={"secret_hash": _hash(token)})
    return token


def is_open(token: str) -> bool:
    stored = SetupToken.objects.first()
    return _matches(stored, token) and not User.objects.has_administrator()


def create_administrator(token: str, *, name: str, email: str, password: str) -> User:
    """Use the token up. Raises SetupClosed. Of any number at the same time one succeeds."""
    with transaction.atomic():
        # The row is the lock: the others wait here, and then find it gone.
        stored = SetupToken.objects.select_for_update().first()
        if not _matches(stored, token) or User.objects.has_administrator():
            raise SetupClosed
        user = User.objects.create_superuser(email, password, name=name)
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
        SetupToken.objects.all().delete()
    return user


@method_decorator(login_not_required, name="dispatch")
@method_decorator(never_cache, name="dispatch")
@method_decorator(sensitive_post_parameters("password"), name="dispatch")
@method_decorator(limited("setup"), name="dispatch")
class SetupView(FormView):
    template_name = "setup/setup.html"
    form_class = SetupForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_open(self.kwargs["token"]):
            return self._closed()
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: SetupForm) -> HttpResponse:
        try:
            user = create_administrator(self.kwargs["token"], **form.cleaned_data)
        except SetupClosed:
            return self._closed()
        login(self.request, user, backend=_BACKEND)
        return redirect("/")

    def _closed(self) -> HttpResponse:
        message = (
            "This set-up link is not valid any more. While there is no administrator, every start"
            " of the server prints a new one."
        )
        return error_page(self.request, 404, message)


def _matches(stored: SetupToken | None, token: str) -> bool:
    return stored is not None and secrets.compare_digest(stored.secret_hash, _hash(token))


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
