"""The form of a scheduled prompt."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from chat.models import Repeats, Schedule
from chat.personal_forms import VersionedForm
from chat.schedule_times import is_zone, zones

WEEKDAYS = (
    ("1", _("Monday")),
    ("2", _("Tuesday")),
    ("3", _("Wednesday")),
    ("4", _("Thursday")),
    ("5", _("Friday")),
    ("6", _("Saturday")),
    ("7", _("Sunday")),
)


_ONLY_FOR = {"on": Repeats.ONCE, "weekdays": Repeats.WEEKLY, "day": Repeats.MONTHLY}


class ScheduleForm(VersionedForm):
    """What is only for another way to repeat is hidden by the page (schedule.css), and not looked at."""

    name = forms.CharField(label=_("Name"), max_length=Schedule.MAX_NAME_CHARS)
    text = forms.CharField(
        label=_("Prompt"),
        max_length=Schedule.MAX_TEXT_CHARS,
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
        help_text=_("Sent as your message: “What is new in my documents about safety?”"),
    )
    repeats = forms.ChoiceField(label=_("How often"), choices=Repeats.choices)
    on = forms.DateField(
        label=_("Day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    weekdays = forms.MultipleChoiceField(
        label=_("Days of the week"),
        required=False,
        choices=WEEKDAYS,
        widget=forms.CheckboxSelectMultiple,
    )
    day = forms.IntegerField(
        label=_("Day of the month"),
        required=False,
        min_value=1,
        max_value=31,
        help_text=_("A month that is shorter has its last day instead."),
    )
    at = forms.TimeField(
        label=_("Time"), widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    zone = forms.ChoiceField(label=_("Time zone"))
    is_one_chat = forms.BooleanField(label=_("Always in the same chat"), required=False)
    assistant = forms.ChoiceField(label=_("Assistant"), required=False)
    model = forms.ChoiceField(label=_("Model"), required=False)
    is_on = forms.BooleanField(label=_("Send it at these times"), required=False)

    def __init__(
        self,
        *args: Any,
        models: list[tuple[str, str]],
        assistants: list[tuple[str, str]],
        **kw: Any,
    ):
        super().__init__(*args, **kw)
        self._choose("model", [("", _("Whichever is usual")), *models])
        self._choose("assistant", [("", _("None")), *assistants])
        if not assistants and not self.initial.get("assistant"):
            del self.fields["assistant"]
        self._choose("zone", [(name, name.replace("_", " ")) for name in zones()])
        if not self.initial.get("zone"):  # settings-page.js chooses the reader's own
            self.fields["zone"].widget.attrs["data-own-zone"] = ""

    def _choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        """What was kept can be kept, though nobody could choose it now."""
        kept = self.initial.get(name, "")
        if kept and kept not in dict(choices):
            choices.append((kept, _("%(model)s (not here)") % {"model": kept}))
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    def clean_weekdays(self) -> list[int]:
        return [int(number) for number in self.cleaned_data["weekdays"]]

    def clean_zone(self) -> str:
        zone: str = self.cleaned_data["zone"]
        if not is_zone(zone):
            raise forms.ValidationError(_("There is no such time zone."))
        return zone

    def clean(self) -> dict[str, Any]:
        repeats = self.cleaned_data.get("repeats")
        for name, way in _ONLY_FOR.items():
            if repeats and repeats != way and self.errors.pop(name, None):
                self.cleaned_data[name] = [] if name == "weekdays" else None
        if repeats == Repeats.ONCE and self.cleaned_data.get("on", "") is None:
            self.add_error("on", _("Choose the day on which it is to be sent."))
        if repeats == Repeats.WEEKLY and self.cleaned_data.get("weekdays") == []:
            self.add_error("weekdays", _("Choose a day of the week."))
        return self.cleaned_data

    def fields_of_row(self) -> dict[str, Any]:
        values = dict(self.cleaned_data)
        values.pop("version")
        values["assistant_id"] = values.pop("assistant", "") or None
        values["day"] = values["day"] or 1
        return values
