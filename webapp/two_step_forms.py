"""Forms of the second step. Apart from webapp/two_step.py, because allauth imports them by name."""

from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as base
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from django import forms
from django.core.cache import cache
from django.utils.translation import gettext_lazy as _

USED_CODE_S = 180  # longer than a code is valid, with the step before and the one after


class _OnceForm:
    """A code works once. allauth forgets used ones after one step, and we take three."""

    user: Any

    def clean_code(self) -> str:
        code: str = super().clean_code()  # type: ignore[misc]
        digits = "".join(filter(str.isalnum, code)).lower()
        if not cache.add(f"second-step-{self.user.pk}-{digits}", "used", USED_CODE_S):
            raise get_adapter().validation_error("incorrect_code")
        return code


class AuthenticateForm(_OnceForm, base.AuthenticateForm):  # type: ignore[misc]
    pass


class ReauthenticateForm(_OnceForm, base.ReauthenticateForm):  # type: ignore[misc]
    pass


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """Always one that signs in by itself, after a fingerprint, a face or a PIN."""

    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        required=False,
        help_text=_("To tell it from others: “Laptop”, “Phone”, “Key on my ring”."),
    )
    passwordless = forms.BooleanField(initial=True, required=False, widget=forms.HiddenInput)

    def clean_name(self) -> str:
        return self.cleaned_data["name"].strip() or str(_("Passkey"))
