"""The forms of sign-up and set-up, and of a name."""

from typing import Any

from allauth.account.forms import SignupForm as StockSignupForm
from allauth.core import context
from django import forms
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import (
    password_validators_help_text_html,
    validate_password,
)
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _

from webapp.invitations import admit, check_admission, invitation_of
from webapp.models import User
from webapp.sign_in_forms import ADDRESS, name_fields
from webapp.signup_work import TRAP, NotWorked, check_work, new_challenge

_NAME_WIDGET = forms.TextInput(attrs={"autocomplete": "name"})
_EMAIL_WIDGET = forms.EmailInput(attrs={"autocomplete": "email"})
_PASSWORD_WIDGET = forms.PasswordInput(attrs={"autocomplete": "new-password"})


class NameForm(forms.Form):
    """What sign-up asks of a name; for whoever wants another one."""

    name = forms.CharField(label=_("Name"), max_length=120, widget=_NAME_WIDGET)


class SignupForm(StockSignupForm):  # type: ignore[misc]
    name = forms.CharField(label=_("Name"), max_length=120, widget=_NAME_WIDGET)
    field_order = ("name", "email", "password1")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, email=ADDRESS)
        invitation = invitation_of(context.request)
        if invitation is not None and invitation.email:
            self.fields["email"].initial = invitation.email
            self.fields["email"].widget.attrs["readonly"] = True

        self.is_invited = invitation is not None

    @property
    def work_bits(self) -> int:
        """Who is invited is no program: 0."""
        return 0 if self.is_invited else settings.SIGNUP_WORK_BITS

    @property
    def challenge(self) -> str:
        """A new one each time that the form is shown."""
        return new_challenge()

    def clean_email(self) -> str:
        email: str = super().clean_email()
        check_admission(context.request, email)
        return email

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            if self.data.get(TRAP):
                raise NotWorked
            if not self.is_invited:
                check_work(self.data)
        except NotWorked:
            self.add_error(
                None,
                _(
                    "Your browser has to prove with a small sum that it is no robot's, which needs"
                    " JavaScript. Please try again."
                ),
            )
        return cleaned

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponseBase | None]:
        if self.account_already_exists:
            # The page is the same as for a new account, and so has to be the time until it comes.
            make_password(self.cleaned_data["password1"])
        saved: tuple[User | None, HttpResponseBase | None] = super().try_save(request)
        return saved

    def save(self, request: HttpRequest) -> User:
        return admit(request, lambda: super(SignupForm, self).save(request))


class SetupForm(forms.Form):
    """The first administrator."""

    name = forms.CharField(label=_("Name"), max_length=120, widget=_NAME_WIDGET)
    email = forms.EmailField(label=ADDRESS, max_length=254, widget=_EMAIL_WIDGET)
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=_PASSWORD_WIDGET,
        help_text=password_validators_help_text_html(),
    )

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError(_("An account with this e-mail address exists already."))
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
