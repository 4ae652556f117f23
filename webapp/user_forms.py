"""The console's forms of an account."""

from typing import Any

from allauth.account.models import EmailAddress
from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.forms.models import model_to_dict
from unfold.forms import UserChangeForm as StockUserChangeForm

from webapp.administrators import is_last_administrator, locked_with_administrators
from webapp.directory_links import lock_links_of
from webapp.models import User

_WATCHED = ("is_active", "tier", "groups", "is_staff", "is_superuser", "user_permissions")
"""What directories and strikes change as well, while a form lies open."""


class UserCreationForm(BaseUserCreationForm):
    class Meta:
        model = User
        fields = ("email", "name")


class _Joined(forms.HiddenInput):
    """Of many values, with something to send where there are none."""

    def format_value(self, value: Any) -> str:
        return ",".join(str(one) for one in value or ())

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [one for one in data.get(name, "").split(",") if one]


class UserChangeForm(StockUserChangeForm):  # type: ignore[misc]
    """It carries what it showed, so that an old one undoes nothing that has happened since."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.watched = [name for name in _WATCHED if name in self.fields]
        # A program that sends it without having looked at it says of nothing that it has seen it.
        tells = not self.is_bound or self.add_initial_prefix("is_active") in self.data
        for field in (self.fields[name] for name in self.watched):
            field.show_hidden_initial = tells
            if isinstance(field, forms.ModelMultipleChoiceField):
                field.hidden_widget = _Joined

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        confirmed = EmailAddress.objects.filter(email=email, verified=True)
        if "email" in self.changed_data and confirmed.exclude(user=self.instance).exists():
            raise forms.ValidationError("Another account has confirmed this address.")
        return email

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        lock_links_of(self.instance.pk)
        now = locked_with_administrators(User.objects.all(), self.instance.pk)
        if now is None or self._has_changed_since(now):
            raise forms.ValidationError(
                "This account has changed meanwhile. Open it anew, and change it then."
            )
        stays = all(cleaned.get(name, True) for name in ("is_active", "is_superuser"))
        if not stays and is_last_administrator(now):
            raise forms.ValidationError(
                "This is the last active administrator. Make somebody else one first."
            )
        return cleaned

    def _has_changed_since(self, now: User) -> bool:
        values = model_to_dict(now, self.watched)
        return any(
            self.fields[name].has_changed(values[name], self._shown(name))
            for name in self.watched
            if self.fields[name].show_hidden_initial
        )

    def _shown(self, name: str) -> Any:
        widget = self.fields[name].hidden_widget()
        return widget.value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
