"""Authenticator apps, passkeys and recovery codes, on allauth.mfa.

Who has one of the first two is asked for it after the password, or after another sign-in provider;
a passkey alone signs in as well. Everything here asks for the password, a code or a passkey anew.
"""

from functools import wraps
from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base import views as base
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import path
from django.utils.translation import gettext_lazy as _
from django.views.generic import RedirectView

from chat.sealing import Unreadable, seal, unseal
from webapp.directory_links import is_of_directory
from webapp.models import User
from webapp.rate_limits import limited
from webapp.second_step_rule import who_owe_one


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """No code fits what cannot be read, and so nobody gets in by it."""
        try:
            return unseal(encrypted_text)
        except Unreadable:
            raise self.validation_error("unreadable") from None

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        entity: dict[str, str] = super().get_public_key_credential_rp_entity()
        return {**entity, "name": "Vitrine"}

    def generate_authenticator_name(self, user: User, type: Any) -> str:
        return ""

    error_messages = DefaultMFAAdapter.error_messages | {
        "unreadable": _(
            "The server's secret key has changed, and your second step cannot be checked. Ask your"
            " administrator to remove it."
        ),
    }


class SecurityView(base.IndexView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        codes = context["authenticators"].get(Authenticator.Type.RECOVERY_CODES)
        # By the mask of used ones: nothing is unsealed only to be counted.
        num_used = codes.instance.data["used_mask"].bit_count() if codes else 0
        context["owes_step"] = bool(who_owe_one([self.request.user]))
        context["has_directory"] = settings.DIRECTORY is not None
        context["is_of_directory"] = is_of_directory(self.request.user)
        context["num_codes_left"] = app_settings.RECOVERY_CODE_COUNT - num_used if codes else 0
        return context


def _page(view: Any, heading: Any) -> Any:
    """A settings page of allauth's."""
    return view.as_view(extra_context={"heading": heading, "here": "security"})


def _unsealing(view: Any) -> Any:
    """Who has come in by a passkey is told why their codes cannot be read any more."""

    @wraps(view)
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response: HttpResponseBase = view(request, *args, **kwargs)
        except ValidationError as error:
            messages.error(request, error.messages[0])
            return redirect("mfa_index")
        return response

    return told


settings_patterns = [
    path("", _page(SecurityView, _("Security")), name="mfa_index"),
    path(
        "app",
        limited("second_step")(_page(totp.ActivateTOTPView, _("Authenticator app"))),
        name="mfa_activate_totp",
    ),
    path(
        "app/remove",
        _page(totp.DeactivateTOTPView, _("Remove the authenticator app")),
        name="mfa_deactivate_totp",
    ),
    path(
        "codes",
        _unsealing(_page(recovery_codes.ViewRecoveryCodesView, _("Recovery codes"))),
        name="mfa_view_recovery_codes",
    ),
    path(
        "codes/new",
        _unsealing(_page(recovery_codes.GenerateRecoveryCodesView, _("New recovery codes"))),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "codes/download",
        _unsealing(recovery_codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("passkeys", RedirectView.as_view(pattern_name="mfa_index"), name="mfa_list_webauthn"),
    path(
        "passkeys/add", _page(webauthn.AddWebAuthnView, _("New passkey")), name="mfa_add_webauthn"
    ),
    path(
        "passkeys/<int:pk>",
        _page(webauthn.EditWebAuthnView, _("Rename the passkey")),
        name="mfa_edit_webauthn",
    ),
    path(
        "passkeys/<int:pk>/remove",
        _page(webauthn.RemoveWebAuthnView, _("Remove the passkey")),
        name="mfa_remove_webauthn",
    ),
]

entrance_patterns = [
    path("second-step/", limited("second_step")(base.authenticate), name="mfa_authenticate"),
    path(
        "login/passkey/",
        login_not_required(limited("passkey")(webauthn.login_webauthn)),
        name="mfa_login_webauthn",
    ),
    path(
        "reauthenticate/code/",
        limited("reauthenticate")(base.reauthenticate),
        name="mfa_reauthenticate",
    ),
    path(
        "reauthenticate/passkey/",
        limited("reauthenticate")(webauthn.reauthenticate_webauthn),
        name="mfa_reauthenticate_webauthn",
    ),
]
