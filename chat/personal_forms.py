"""Forms of the settings pages for custom instructions, assistants and saved prompts."""

from typing import Any
from uuid import UUID

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from chat.models import HistoryStrategy
from chat.personal_api import MAX_ABOUT_CHARS, MAX_PROMPT_CHARS, MAX_STARTERS, PROMPT_NAME
from chat.setup import MAX_SYSTEM_PROMPT_CHARS, MAX_TOOL_SERVERS
from chat.sources import MAX_PICKED

_NAME_HELP = _("Small letters, digits, - and _. Called by a slash in front, such as /translate.")


def _area(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "dir": "auto"})


def _number(label: Any, least: float, most: float, **more: Any) -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any", "placeholder": _("The model's own")})
    return forms.FloatField(
        label=label, required=False, min_value=least, max_value=most, widget=widget, **more
    )


class VersionedForm(forms.Form):
    """`version` is the one that the page was made with: another tab's change is not overwritten."""

    version = forms.IntegerField(widget=forms.HiddenInput, required=False)


class PersonalisationForm(VersionedForm):
    is_on = forms.BooleanField(label=_("Use custom instructions in new chats"), required=False)
    about_you = forms.CharField(
        label=_("About you"),
        required=False,
        max_length=MAX_ABOUT_CHARS,
        widget=_area(4),
        help_text=_("What should the model know of you? Your name, your work, where you live."),
    )
    how_to_answer = forms.CharField(
        label=_("How to answer"),
        required=False,
        max_length=MAX_ABOUT_CHARS,
        widget=_area(4),
        help_text=_("Tone, length, language, format."),
    )
    history_strategy = forms.ChoiceField(
        label=_("When a chat gets too long for the model, show it"),
        choices=HistoryStrategy.choices,
        help_text=_("Pinned messages are shown in any case."),
    )
    caches_answers = forms.BooleanField(
        label=_("Give the same answer again when I begin a chat with the same question"),
        required=False,
        help_text=_("Kept for a day, for you alone. The answer says so."),
    )


class AssistantForm(VersionedForm):
    name = forms.CharField(label=_("Name"), max_length=80)
    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    model = forms.ChoiceField(label=_("Model"), required=False)
    system_prompt = forms.CharField(
        label=_("System prompt"),
        required=False,
        max_length=MAX_SYSTEM_PROMPT_CHARS,
        widget=_area(8),
        help_text=_("Who it is and how it works: “You are Nina, a patient teacher of Portuguese.”"),
    )
    starters = forms.CharField(
        label=_("Suggestions"),
        required=False,
        widget=_area(3),
        help_text=_("Shown in a new chat, one to a line, six at most."),
    )
    collections = forms.MultipleChoiceField(
        label=_("Answers from these collections"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    tool_servers = forms.MultipleChoiceField(
        label=_("May use these tools"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    temperature = _number(_("Temperature"), 0, 2)
    top_p = _number(_("Top p"), 0.01, 1)
    max_tokens = forms.IntegerField(
        label=_("Longest answer, in tokens"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        widget=forms.NumberInput(attrs={"placeholder": _("The model's own")}),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        widget=forms.NumberInput(attrs={"placeholder": _("Another one each time")}),
    )
    history_strategy = forms.ChoiceField(
        label=_("When a chat gets too long for the model, show it"),
        required=False,
        choices=[("", _("As in your settings")), *HistoryStrategy.choices],
    )
    is_shared = forms.BooleanField(label=_("Everybody here may use it"), required=False)

    PARAMETERS = ("temperature", "top_p", "max_tokens", "seed")

    def __init__(
        self,
        *args: Any,
        models: list[tuple[str, str]],
        collections: list[tuple[str, str]],
        tool_servers: list[tuple[str, str]],
        may_share: bool,
        **kw: Any,
    ):
        super().__init__(*args, **kw)
        self.fields["collections"].choices = collections  # type: ignore[attr-defined]
        if not collections:
            del self.fields["collections"]
        self.fields["tool_servers"].choices = tool_servers  # type: ignore[attr-defined]
        if not tool_servers:
            del self.fields["tool_servers"]
        choices = [("", _("Whichever is chosen")), *models]
        kept = self.initial.get("model", "")
        if kept and kept not in dict(choices):
            choices.append((kept, _("%(model)s (not here)") % {"model": kept}))
        self.fields["model"].choices = choices  # type: ignore[attr-defined]
        if not may_share:
            del self.fields["is_shared"]

    def clean_collections(self) -> list[UUID]:
        if len(self.cleaned_data["collections"]) > MAX_PICKED:
            raise forms.ValidationError(_("There may be %(n)s at most."), params={"n": MAX_PICKED})
        return [UUID(id_) for id_ in self.cleaned_data["collections"]]

    def clean_tool_servers(self) -> list[str]:
        """Those that this reader may not use stay, for others who may."""
        names: list[str] = self.cleaned_data["tool_servers"]
        shown = dict(self.fields["tool_servers"].choices)  # type: ignore[attr-defined]
        kept = [one for one in self.initial.get("tool_servers", ()) if one not in shown]
        if len(kept) + len(names) > MAX_TOOL_SERVERS:
            raise forms.ValidationError(
                _("There may be %(n)s at most."), params={"n": MAX_TOOL_SERVERS}
            )
        return [*kept, *names]

    def clean_starters(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["starters"].splitlines()]
        starters = [line for line in lines if line]
        if len(starters) > MAX_STARTERS:
            raise forms.ValidationError(_("There may be six at most."))
        if any(len(line) > 200 for line in starters):
            raise forms.ValidationError(_("One of them is longer than 200 characters."))
        return starters

    def fields_of_row(self, before: dict[str, Any]) -> dict[str, Any]:
        """What to save; parameters that this form does not show stay as `before`."""
        values = dict(self.cleaned_data)
        values.pop("version")
        shown = {name: values.pop(name) for name in self.PARAMETERS}
        kept = {name: value for name, value in before.items() if name not in shown}
        values["parameters"] = kept | {k: v for k, v in shown.items() if v is not None}
        return values


class PromptForm(VersionedForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=40,
        validators=[RegexValidator(PROMPT_NAME, _("Small letters, digits, - and _ only."))],
        help_text=_NAME_HELP,
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
    )
    text = forms.CharField(
        label=_("Text"),
        max_length=MAX_PROMPT_CHARS,
        widget=_area(8),
        help_text=(
            _(
                "{{name}} asks for a text, {{tone:formal|casual}} for a choice and {{day:date}} for"
                " a date before it is put into the message box."
            )
        ),
    )
