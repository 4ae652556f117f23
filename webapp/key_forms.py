"""What a person says of an API key."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from webapp.api_keys import MAX_PATTERN_CHARS, MAX_PATTERNS
from webapp.models import ApiKey, User
from webapp.scopes import SCOPES, USUAL

_SCOPE_WORDS = {
    "chat": _("Answers of models"),
    "embeddings": _("Vectors for texts"),
    "moderations": _("Verdicts on texts"),
    "audio": _("Speech to text, and text to speech"),
    "images": _("Pictures that models make"),
    "files": _("Files and batches"),
    "knowledge": _("Vector stores and their search"),
    "api": _("Everything under /api: chats, folders, assistants"),
    "api:read": _("Everything under /api, to read only"),
    "admin:read": _("Everybody's usage, and metrics"),
}
_DAYS = ("7", "30", "90", "365")


class KeyForm(forms.Form):
    """A key's name and limits, which may be changed later."""

    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        help_text=_("What the key is for: you will want to know when you revoke it."),
    )
    model_names = forms.CharField(
        label=_("Models"),
        initial="*",
        widget=forms.Textarea(attrs={"rows": 2, "dir": "ltr", "spellcheck": "false"}),
        help_text=_("Names or patterns, one to a line; * stands for anything."),
    )
    requests_per_minute = forms.IntegerField(
        label=_("Requests a minute, at most"), required=False, min_value=0, max_value=1_000_000
    )
    tokens_per_day = forms.IntegerField(
        label=_("Tokens a day, at most"), required=False, min_value=0, max_value=10**15
    )

    def clean_model_names(self) -> list[str]:
        names = [line.strip() for line in self.cleaned_data["model_names"].splitlines()]
        names = list(dict.fromkeys(name for name in names if name))
        is_long = any(len(name) > MAX_PATTERN_CHARS for name in names)
        if not names or len(names) > MAX_PATTERNS or is_long:
            raise forms.ValidationError(
                _("1 to %(n)s names of at most 200 characters.") % {"n": MAX_PATTERNS}
            )
        return names


class NewKeyForm(KeyForm):
    scopes = forms.MultipleChoiceField(
        label=_("It may be used for"), widget=forms.CheckboxSelectMultiple, initial=USUAL
    )
    days = forms.ChoiceField(
        label=_("It ends"),
        initial="90",
        choices=lambda: [*((days, _after(int(days))) for days in _DAYS), ("", gettext("never"))],
        required=False,
    )
    field_order = ("name", "scopes", "days", "model_names", "requests_per_minute", "tokens_per_day")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [scope for scope in SCOPES if scope != "admin:read" or user.is_staff]
        field = self.fields["scopes"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(scope, _SCOPE_WORDS[scope]) for scope in offered]

    def values(self) -> dict[str, Any]:
        """For create_api_key."""
        values: dict[str, Any] = {**self.cleaned_data}
        days = values.pop("days")
        return values | {"expires_at": _in_days(int(days)) if days else None}


def values_of(key: ApiKey) -> dict[str, Any]:
    """As a form shows them."""
    return {
        "name": key.name,
        "model_names": "\n".join(key.model_names),
        "requests_per_minute": key.requests_per_minute,
        "tokens_per_day": key.tokens_per_day,
    }


def _after(days: int) -> str:
    """In the language of the request, which is not known when this module is read."""
    return ngettext("after %(n)s day", "after %(n)s days", days) % {"n": days}


def _in_days(days: int) -> datetime:
    return timezone.now() + timedelta(days=days)
