"""What moderation decided, in the admin console, and what waits for a person's word.

Texts are seen here that were blocked, asked about, sent to review or appealed, and no others.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanWidget,
)

from moderation.categories import CATEGORIES
from moderation.decision_models import QUEUE_ORDER, SOURCES
from moderation.models import Decision, PolicyVersion, Strike
from moderation.policies import ACTIONS, STAGES
from moderation.reviewing import label, overturn, uphold
from webapp.console_filters import MAX_VALUES, one_of
from webapp.console_words import counted
from webapp.read_only_admin import OfEverybody, RecordsAdmin
from webapp.strike_suspensions import let_in_again

NUM_OTHERS = 10


class ReviewForm(forms.ModelForm):
    """`labels` may stay empty: nobody says, or with the box below that it holds nothing of these."""

    verdict = forms.ChoiceField(
        choices=[("", "No decision yet"), ("uphold", "It was right"), ("overturn", "It was wrong")],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    labels = forms.MultipleChoiceField(
        choices=[(name, name) for name in CATEGORIES],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What the text really holds: to calibrate the classifiers with.",
    )
    is_harmless = forms.BooleanField(
        required=False, label="It holds none of these", widget=UnfoldBooleanWidget
    )

    class Meta:
        model = Decision
        fields = ("notes",)
        widgets = {"notes": UnfoldAdminTextareaWidget(attrs={"rows": 3})}
        help_texts = {"notes": "Its owner reads them."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "labels" in self.fields and self.instance.labels is not None:
            self.initial["labels"] = self.instance.labels
            self.initial["is_harmless"] = not self.instance.labels

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("is_harmless") and values.get("labels"):
            raise forms.ValidationError("It holds none of these, or some: not both.")
        return values


class FailedFilter(admin.SimpleListFilter):
    """Of which some classifier could not be asked."""

    title = "classifiers"
    parameter_name = "failed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Some could not be asked"), ("no", "All were asked")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Decision]) -> QuerySet[Decision]:
        if self.value() == "yes":
            return rows.exclude(failed=[])
        return rows.filter(failed=[]) if self.value() == "no" else rows


def _policy_names() -> list[str]:
    """Of all that there ever were; the decisions themselves are too many to be asked."""
    names = PolicyVersion.objects.order_by("name").values_list("name", flat=True)
    return list(names.distinct()[:MAX_VALUES])


@admin.register(Decision)
class DecisionAdmin(OfEverybody, RecordsAdmin):
    """The queue. What waits comes first, the oldest at the top."""

    nothing_here = "Nothing has been judged."
    form = ReviewForm
    list_display = ("created_at", "review", "stage", "action", "why", "owner", "policy", "has_text")
    list_filter = (
        "review",
        one_of("action", "action", lambda: ACTIONS),
        one_of("stage", "stage", lambda: STAGES),
        "is_dry_run",
        FailedFilter,
        one_of("policy_name", "policy name", _policy_names),
        one_of("source", "source", lambda: SOURCES),
    )
    show_full_result_count = False
    list_select_related = ("owner",)
    search_fields = ("owner__email",)
    actions = ("uphold_chosen", "overturn_chosen")
    shown = (
        "created_at",
        "owner",
        "stage",
        "source",
        "model",
        "policy",
        "action",
        "why",
        "kept_text",
        "appeal",
        "appealed_at",
        "all_scores",
        "not_asked",
        "others",
        "review",
        "reviewer",
        "reviewed_at",
    )
    readonly_fields = shown
    fieldsets = (
        (None, {"fields": shown}),
        ("Your word", {"fields": ("verdict", "notes", "labels", "is_harmless")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        rows: QuerySet[Decision] = super().get_queryset(request).select_related("owner", "strike")
        return rows.order_by(*QUEUE_ORDER)

    def heading(self, row: Decision) -> str:
        """Above its page, in place of its id."""
        return f"{row.action} at {row.created_at:%Y-%m-%d %H:%M}, {self.why(row)}"

    # --- deciding ---------------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody is judge of their own case. Administrators may: there may be nobody else, and the
        log tells of it."""
        user: Any = request.user
        may_decide = bool(super().has_change_permission(request, obj))
        return may_decide and (obj is None or obj.owner_id != user.pk or user.is_superuser)

    def save_model(self, request: HttpRequest, obj: Decision, form: Any, change: bool) -> None:
        values = form.cleaned_data
        decide = {"uphold": uphold, "overturn": overturn}.get(values["verdict"])
        if decide is not None:
            for owner_id in decide([obj], request.user, values["notes"]):
                let_in_again(owner_id)
        else:
            Decision.objects.filter(pk=obj.pk).update(notes=values["notes"])
        label(obj, values["labels"] if values["is_harmless"] or values["labels"] else None)

    @admin.action(description="They were right", permissions=["change"])
    def uphold_chosen(self, request: HttpRequest, rows: QuerySet[Decision]) -> None:
        self._decide(request, rows, "upheld", uphold)

    @admin.action(description="They were wrong", permissions=["change"])
    def overturn_chosen(self, request: HttpRequest, rows: QuerySet[Decision]) -> None:
        self._decide(request, rows, "overturned", overturn)

    def _decide(self, request: HttpRequest, rows: Any, what: str, decide: Any) -> None:
        rows = list(rows)
        chosen = [one for one in rows if self.has_change_permission(request, one)]
        if len(chosen) < len(rows):
            messages.warning(request, "Your own cases are for others to decide.")
        for owner_id in decide(chosen, request.user):
            let_in_again(owner_id)
        LogEntry.objects.log_actions(
            cast(int, request.user.pk), chosen, CHANGE, [{"changed": {"fields": [what]}}]
        )
        if chosen:
            messages.success(request, f"{len(chosen)} {what}.")

    # --- columns ----------------------------------------------------------------------------------

    @admin.display(description="because of")
    def why(self, row: Decision) -> str:
        reasons = (f"{one['category']} {one['probability']:.2f}" for one in row.reasons)
        return ", ".join(reasons) or ("no classifier answered" if row.failed else "–")

    @admin.display(description="policy", ordering="policy_name")
    def policy(self, row: Decision) -> str:
        trial = ", dry run" if row.is_dry_run else ""
        return f"{row.policy_name}, version {row.policy_version}{trial}"

    @admin.display(description="text")
    def has_text(self, row: Decision) -> str:
        return "kept" if row.text else "–"

    @admin.display(description="text")
    def kept_text(self, row: Decision) -> str:
        if not row.text:
            return "Not kept: nobody was to look at it."
        return format_html('<div style="white-space: pre-wrap" dir="auto">{}</div>', row.text)

    @admin.display(description="scores")
    def all_scores(self, row: Decision) -> str:
        ranked = sorted(row.scores.items(), key=lambda one: -one[1])[:8]
        return ", ".join(f"{name} {score:.2f}" for name, score in ranked) or "–"

    @admin.display(description="could not be asked")
    def not_asked(self, row: Decision) -> str:
        return ", ".join(f"{one['classifier']}: {one['reason']}" for one in row.failed) or "–"

    @admin.display(description="of the same person")
    def others(self, row: Decision) -> str:
        """What else was stopped, and how many strikes count."""
        rows = Decision.objects.filter(owner=row.owner_id, is_dry_run=False).exclude(pk=row.pk)
        stopped = rows.filter(action__in=("redact", "ask", "review", "block"))
        lines = [
            (f"{one.created_at:%Y-%m-%d %H:%M}", one.action, self.why(one))
            for one in stopped.order_by("-created_at")[:NUM_OTHERS]
        ]
        num_strikes = Strike.objects.filter(owner=row.owner_id, lifted_at=None).count()
        verb = "counts" if num_strikes == 1 else "count"
        head = format_html("<div>{} that {}</div>", counted(num_strikes, "strike"), verb)
        return head + format_html_join("", "<div>{} {}: {}</div>", lines)
