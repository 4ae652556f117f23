"""What readers think of answers, in the admin console: the rating, its reasons and their comment.

Of the answer nothing is seen here, nor of the chat it stands in.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chat.feedback import Rating, Reason
from chat.models import RatedAnswer
from webapp.read_only_admin import EverybodysAdmin


class _FieldFilter(admin.SimpleListFilter):
    choices_of: Any
    lookup: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        return ((each.value, _words(each.value)) for each in self.choices_of)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        value = self.value()
        if value not in set(self.choices_of):
            return None
        return queryset.filter(**{self.lookup: self.wanted(str(value))})

    def wanted(self, value: str) -> Any:
        return value


class RatingFilter(_FieldFilter):
    title, parameter_name = "rating", "rating"
    choices_of, lookup = Rating, "feedback__rating"


class ReasonFilter(_FieldFilter):
    title, parameter_name = "reason", "reason"
    choices_of, lookup = Reason, "feedback__reasons__contains"

    def wanted(self, value: str) -> Any:
        return [value]


@admin.register(RatedAnswer)
class RatedAnswerAdmin(EverybodysAdmin):
    nothing_here = "Nobody has rated an answer."
    shown = ("created_at", "rating", "reasons", "comment", "model", "reader")
    list_display = fields = readonly_fields = shown  # and nothing of what the answer says
    list_filter = (RatingFilter, ReasonFilter, "model")
    search_fields = ("conversation__owner__email", "feedback__comment")
    search_help_text = "Who rated, or words of the comment"
    list_select_related = ("conversation__owner",)
    ordering = ("-created_at", "-pk")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[RatedAnswer]:
        rows: QuerySet[RatedAnswer] = super().get_queryset(request)
        return rows.filter(feedback__isnull=False).defer("text", "parts", "found")

    def heading(self, row: RatedAnswer) -> str:
        return f"{self.rating(row)}, {row.created_at:%Y-%m-%d %H:%M}"

    @admin.display(description="rating")
    def rating(self, row: RatedAnswer) -> str:
        return _words(_of(row)["rating"])

    @admin.display(description="reasons")
    def reasons(self, row: RatedAnswer) -> str:
        return ", ".join(_words(reason) for reason in _of(row)["reasons"]) or "–"

    @admin.display(description="comment")
    def comment(self, row: RatedAnswer) -> str:
        return _of(row)["comment"] or "–"

    @admin.display(description="reader", ordering="conversation__owner__email")
    def reader(self, row: RatedAnswer) -> str:
        return str(row.conversation.owner.email)


def _of(row: RatedAnswer) -> dict[str, Any]:
    return row.feedback or {"rating": "", "reasons": [], "comment": ""}


def _words(value: str) -> str:
    return value.replace("_", " ")
