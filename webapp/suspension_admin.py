"""Accounts that strikes have closed, in the admin console, with the word of their owners."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from moderation.models import Suspension
from moderation.standings import counting_decisions
from webapp.console_words import counted
from webapp.read_only_admin import OfEverybody, RecordsAdmin
from webapp.strike_suspensions import keep_out, let_in


class SuspensionForm(forms.ModelForm):
    verdict = forms.ChoiceField(
        choices=[
            ("", "No decision yet"),
            ("let_in", "Let them in: what was counted counts no more"),
            ("keep_out", "It stays"),
        ],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )

    class Meta:
        model = Suspension
        fields = ("notes",)
        widgets = {"notes": UnfoldAdminTextareaWidget(attrs={"rows": 3})}
        help_texts = {"notes": "Its owner reads them."}


@admin.register(Suspension)
class SuspensionAdmin(OfEverybody, RecordsAdmin):
    """Those that hold first, and of them those that were appealed."""

    nothing_here = "Nobody is suspended because of strikes."
    form = SuspensionForm
    list_display = ("created_at", "owner", "points", "appealed_at", "reviewed_at", "ended_at")
    list_filter = (
        ("ended_at", admin.EmptyFieldListFilter),
        ("appealed_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("owner",)
    search_fields = ("owner__email",)
    shown = (
        "owner",
        "created_at",
        "points",
        "because",
        "appeal",
        "appealed_at",
        "reviewer",
        "reviewed_at",
        "ended_at",
    )
    readonly_fields = shown
    fieldsets = ((None, {"fields": shown}), ("Your word", {"fields": ("verdict", "notes")}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Suspension]:
        rows: QuerySet[Suspension] = super().get_queryset(request)
        return rows.order_by(
            F("ended_at").desc(nulls_first=True), F("appealed_at").asc(nulls_last=True), "-pk"
        )

    def save_model(self, request: HttpRequest, obj: Suspension, form: Any, change: bool) -> None:
        values = form.cleaned_data
        if values["verdict"] == "let_in":
            let_in(obj, request.user, values["notes"])
        elif values["verdict"] == "keep_out":
            keep_out(obj, request.user, values["notes"])
        else:
            Suspension.objects.filter(pk=obj.pk).update(notes=values["notes"])

    @admin.display(description="because of")
    def because(self, row: Suspension) -> str:
        num_decisions = counting_decisions(row.owner_id).count()
        return format_html(
            '<a class="text-link" href="/admin/moderation/decision/?q={}">{} that {}</a>',
            row.owner.email,
            counted(num_decisions, "decision"),
            "counts" if num_decisions == 1 else "count",
        )
