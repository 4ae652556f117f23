"""Sign-up, sign-in, sign-out and passwords, on django-allauth."""

from typing import Any

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse, SignupClosedException
from django.conf import settings
from django.contrib import messages
from django.contrib.sites.shortcuts import get_current_site
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.directory_links import is_of_directory
from webapp.directory_pages import connect_page, not_of_directory
from webapp.invitations import LETTER, invitation_of, open_invitation, signup_is_open
from webapp.mail import send_soon
from webapp.models import User
from webapp.proofs import proved_lately, sign_in_again
from webapp.provider_sign_in import buttons
from webapp.rate_limits import limited
from webapp.signup import current_policy
from webapp.suspended_page import appeal_suspension, page_of_suspended
from webapp.unconfirmed import note_confirmation
from webapp.user_agents import words_of


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    error_messages = DefaultAccountAdapter.error_messages | {
        "email_password_mismatch": gettext_lazy(
            "This e-mail address and this password do not go together."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return signup_is_open(request)

    def save_user(
        self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True
    ) -> User:
        user.name = form.cleaned_data.get("name", "")
        saved: User = super().save_user(request, user, form, commit)
        return saved

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Written now and sent beside the request, which would tell by its time whether it was."""
        request = self.request
        site = {"request": request, "email": email, "current_site": get_current_site(request)}
        if "user_agent" in context:
            site["browser"] = words_of(context["user_agent"])
        message = self.render_mail(template_prefix, email, site | context)
        send_soon(message, is_one_of_many=template_prefix == LETTER)

    def get_client_ip(self, request: HttpRequest) -> str:
        """webapp/proxies.py knows it."""
        address: str = request.META["REMOTE_ADDR"]
        return address

    def is_safe_url(self, url: str) -> bool:
        """Only paths of our own; allauth would also take any host in ALLOWED_HOSTS."""
        return url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Failures only: a page that has changed says that it worked."""
        if level >= messages.WARNING:
            super().add_message(request, level, *args, **kwargs)

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Of somebody who has proved to be this user."""
        return page_of_suspended(request, user)

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        note_confirmation(request, email_address.user)
        return bool(super().confirm_email(request, email_address))

    def set_password(self, user: User, password: str) -> None:
        """The last guard, behind pages and letters: one of the directory's people has none here."""
        if is_of_directory(user):
            raise PermissionDenied
        super().set_password(user, password)

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Asked at every door that wants a proof; allauth would leave them all open to whoever has
        nothing to prove it with here, as people of a provider."""
        if not proved_lately(self.request):
            raise ImmediateHttpResponse(sign_in_again(self.request))
        return bool(super().is_reauthentication_required(app=app, **kwargs))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account_change_password") + "?changed"


_LETTER_TO = "letter_to"
"""In the session: the address that was typed, whether or not anybody has it."""


class SignupView(views.SignupView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        invitation = invitation_of(self.request)
        context: dict[str, Any] = super().get_context_data(**kwargs, invitation=invitation)
        return context

    def form_valid(self, form: BaseForm) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().form_valid(form)
            self.request.session[_LETTER_TO] = form.cleaned_data["email"]
        except IntegrityError:
            # Two sign-ups with the same address at the same moment; the form saw none of them.
            form.add_error("email", _("An account with this e-mail address exists already."))
            response = self.form_invalid(form)
        except SignupClosedException:
            response = self.closed()
        return response


class LoginView(views.LoginView):  # type: ignore[misc]
    def form_valid(self, form: BaseForm) -> HttpResponseBase:
        response: HttpResponseBase = super().form_valid(form)
        login: str = form.cleaned_data["login"]
        # Whoever is not in by now may have to wait for a letter.
        if "@" in login and not self.request.user.is_authenticated:
            self.request.session[_LETTER_TO] = login
        return response


class PasswordResetView(views.PasswordResetView):  # type: ignore[misc]
    def form_valid(self, form: BaseForm) -> HttpResponseBase:
        self.request.session[_LETTER_TO] = form.cleaned_data["email"]
        response: HttpResponseBase = super().form_valid(form)
        return response


class ConfirmEmailView(views.ConfirmEmailView):  # type: ignore[misc]
    def respond(self, success: bool) -> HttpResponseBase:
        """Whoever has to sign in now is told why, where nothing else is told already."""
        is_told = len(messages.get_messages(self.request)) > 0
        if success and not self.request.user.is_authenticated and not is_told:
            messages.success(self.request, _("Your address is confirmed. Sign in."))
        response: HttpResponseBase = super().respond(success)
        return response


def account_context(request: HttpRequest) -> dict[str, Any]:
    """For templates; each is a query only where a template asks."""
    return {
        "signup_is_open": lambda: signup_is_open(request),
        "signup_mode": lambda: current_policy().mode,
        "sign_in_providers": buttons,
        "needs_setup": lambda: not User.objects.has_administrator(),
        "can_reset_password": bool(settings.SMTP_HOST),
        "letter_to": lambda: request.session.get(_LETTER_TO, ""),
    }


urlpatterns = [
    path("login/", limited("login")(LoginView.as_view()), name="account_login"),
    path("signup/", limited("signup")(SignupView.as_view()), name="account_signup"),
    path("invitation/<str:token>", open_invitation, name="invitation"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("suspended/", appeal_suspension, name="appeal_suspension"),
    path(
        "password/change/",
        # It asks for the old one.
        limited("password_change")(not_of_directory(views.password_change)),
        name="account_change_password",
    ),
    path(
        "password/set/",
        not_of_directory(reauthentication_required(views.password_set)),
        name="account_set_password",
    ),
    path("directory/", connect_page, name="directory_connect"),
    path(
        "reauthenticate/",
        limited("reauthenticate")(views.reauthenticate),
        name="account_reauthenticate",
    ),
]


class EmailView(views.EmailView):  # type: ignore[misc]
    """The new address counts once its link has been opened; then the old one is told, and gone."""

    extra_context = {"heading": gettext_lazy("E-mail address"), "here": "account"}

    def get_form(self, form_class: Any = None) -> BaseForm:
        form: BaseForm = super().get_form(form_class)
        form.fields["email"].label = _("New address")
        return form


def urls_with_mail() -> list[URLPattern]:
    """What only a site that can write letters has."""
    return [
        path(
            "confirm-email/", views.email_verification_sent, name="account_email_verification_sent"
        ),
        path("confirm-email/<str:key>/", ConfirmEmailView.as_view(), name="account_confirm_email"),
        path(
            "email/",
            limited("email")(not_of_directory(EmailView.as_view())),
            name="account_email",
        ),
        path(
            "password/reset/",
            limited("password_reset")(PasswordResetView.as_view()),
            name="account_reset_password",
        ),
        path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
        re_path(
            # A key holds a hyphen too: the first one ends the user's id.
            r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)/$",
            views.password_reset_from_key,
            name="account_reset_password_from_key",
        ),
        path(
            "password/reset/key/done/",
            views.password_reset_from_key_done,
            name="account_reset_password_from_key_done",
        ),
    ]


if settings.SMTP_HOST:
    urlpatterns += urls_with_mail()
