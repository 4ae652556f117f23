"""Sign-up, sign-in, sign-out and passwords, on django-allauth."""

from typing import Any

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError
from django.forms import BaseForm
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.models import User
from webapp.rate_limits import limited


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return signup_is_open()

    def save_user(
        self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True
    ) -> User:
        user.name = form.cleaned_data.get("name", "")
        saved: User = super().save_user(request, user, form, commit)
        return saved

    def is_safe_url(self, url: str) -> bool:
        """Only paths of our own; allauth would also take any host in ALLOWED_HOSTS."""
        return url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Failures only: a page that has changed says that it worked."""
        if level >= messages.WARNING:
            super().add_message(request, level, *args, **kwargs)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account_change_password") + "?changed"


class SignupView(views.SignupView):  # type: ignore[misc]
    def form_valid(self, form: BaseForm) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().form_valid(form)
        except IntegrityError:
            # Two sign-ups with the same address at the same moment; the form saw none of them.
            form.add_error("email", "An account with this e-mail address exists already.")
            response = self.form_invalid(form)
        return response


def signup_is_open() -> bool:
    """Nobody signs up before the administrator exists: being first gives no rights."""
    return settings.SIGNUP_OPEN and User.objects.has_administrator()


def account_context(request: HttpRequest) -> dict[str, Any]:
    """For templates; each is a query only where a template asks."""
    return {
        "signup_is_open": signup_is_open,
        "needs_setup": lambda: not User.objects.has_administrator(),
        "can_reset_password": bool(settings.SMTP_HOST),
    }


urlpatterns = [
    path("login/", limited("login")(views.login), name="account_login"),
    path("signup/", limited("signup")(SignupView.as_view()), name="account_signup"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path(
        "password/change/",
        limited("password_change")(views.password_change),  # it asks for the old one
        name="account_change_password",
    ),
    path("password/set/", views.password_set, name="account_set_password"),
    path("reauthenticate/", limited("login")(views.reauthenticate), name="account_reauthenticate"),
]

if settings.SMTP_HOST:
    urlpatterns += [
        path(
            "confirm-email/", views.email_verification_sent, name="account_email_verification_sent"
        ),
        path("confirm-email/<str:key>/", views.confirm_email, name="account_confirm_email"),
        path(
            "password/reset/",
            limited("password_reset")(views.password_reset),
            name="account_reset_password",
        ),
        path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
        path(
            "password/reset/key/<str:uidb36>-<str:key>/",
            views.password_reset_from_key,
            name="account_reset_password_from_key",
        ),
        path(
            "password/reset/key/done/",
            views.password_reset_from_key_done,
            name="account_reset_password_from_key_done",
        ),
    ]
