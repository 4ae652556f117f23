"""The forms of sign-in and of passwords. Apart, because allauth imports them by name."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import ChangePasswordForm as StockChangePasswordForm
from allauth.account.forms import LoginForm as StockLoginForm
from allauth.account.forms import ResetPasswordForm as StockResetPasswordForm
from allauth.account.forms import ResetPasswordKeyForm as StockResetPasswordKeyForm
from allauth.account.forms import SetPasswordForm as StockSetPasswordForm
from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from webapp.directory_links import is_of_directory
from webapp.rate_limits import seconds_to_wait

ADDRESS = _("E-mail address")
_NEW_PASSWORD = {"password1": _("New password"), "password2": _("New password (again)")}
_LOGIN_WIDGET = forms.TextInput(
    attrs={
        "autocomplete": "username",
        "autocapitalize": "none",
        "spellcheck": "false",
        "dir": "ltr",
    }
)


def name_fields(form: forms.BaseForm, **labels: Any) -> None:
    """In the words of the other pages; allauth's placeholder would repeat its own."""
    for name, label in labels.items():
        form.fields[name].label = label
        form.fields[name].widget.attrs.pop("placeholder", None)


class LoginForm(StockLoginForm):  # type: ignore[misc]
    """Where there is a directory, it may know people by other names than their addresses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.DIRECTORY is not None:
            self.fields["login"] = forms.CharField(
                label=_("E-mail address or user name"), max_length=254, widget=_LOGIN_WIDGET
            )
            self.order_fields(["login", "password"])
        else:
            name_fields(self, login=ADDRESS)

    def _clean_with_password(self, credentials: dict[str, Any]) -> Any:
        cleaned = super()._clean_with_password(credentials)
        if "@" not in credentials["email"] or is_of_directory(self.user):
            # allauth asks whether this address is confirmed, and what was typed may be none.
            self._login.email = self.user.email
        return cleaned


class ResetPasswordForm(StockResetPasswordForm):  # type: ignore[misc]
    """The page says the same to everybody, also where a mailbox has had letters enough; a letter tells
    people of the directory where to turn."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, email=ADDRESS)

    def save(self, request: HttpRequest, **kwargs: Any) -> str:
        if seconds_to_wait(request, "letters_of_reset") is not None:
            return str(self.cleaned_data["email"])
        theirs = [user for user in self.users if is_of_directory(user)]
        if not theirs:
            return str(super().save(request, **kwargs))
        email: str = self.cleaned_data["email"]
        context = {"user": theirs[0], "request": request}
        get_adapter().send_mail("account/email/password_of_directory", email, context)
        return email


class ChangePasswordForm(StockChangePasswordForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, oldpassword=_("Current password"), **_NEW_PASSWORD)


class ResetPasswordKeyForm(StockResetPasswordKeyForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, **_NEW_PASSWORD)


class SetPasswordForm(StockSetPasswordForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, **_NEW_PASSWORD)
