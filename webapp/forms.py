"""The forms of sign-up and set-up."""

from typing import Any

from allauth.account.forms import SignupForm as StockSignupForm
from django import forms
from django.contrib.auth.password_validation import (
    password_validators_help_text_html,
    validate_password,
)

from webapp.models import User

_NAME_WIDGET = forms.TextInput(attrs={"autocomplete": "name"})
_EMAIL_WIDGET = forms.EmailInput(attrs={"autocomplete": "email"})
_PASSWORD_WIDGET = forms.PasswordInput(attrs={"autocomplete": "new-password"})


class SignupForm(StockSignupForm):  # type: ignore[misc]
    name = forms.CharField(label="Name", max_length=120, widget=_NAME_WIDGET)
    field_order = ("name", "email", "password1")


class SetupForm(forms.Form):
    """The first administrator."""

    name = forms.CharField(label="Name", max_length=120, widget=_NAME_WIDGET)
    email = forms.EmailField(label="E-mail", max_length=254, widget=_EMAIL_WIDGET)
    password = forms.CharField(
        label="Password",
        strip=False,
        widget=_PASSWORD_WIDGET,
        help_text=password_validators_help_text_html(),
    )

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError("An account with this e-mail address exists already.")
        return email

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if password := cleaned.get("password"):
            user = User(email=cleaned.get("email", ""), name=cleaned.get("name", ""))
            try:
                validate_password(password, user)
            except forms.ValidationError as error:
                self.add_error("password", error)
        return cleaned
