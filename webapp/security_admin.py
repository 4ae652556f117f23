"""The trail of sign-ins and of what opens accounts, in the admin console."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest

from webapp.models import SecurityEvent, User
from webapp.read_only_admin import EverybodysAdmin
from webapp.security_events import Kind, hashes_of, note_event

_RIGHTS = {"is_staff", "is_superuser", "groups", "user_permissions", "tier", "cost_per_month"}


class LeavesTrail:
    """For a ModelAdmin of users: who changed what opens an account, and what it may do."""

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        changed = set(form.changed_data) if change else set()
        if changed & _RIGHTS:
            how = f"changed in the console: {', '.join(sorted(changed & _RIGHTS))}"
            note_event(Kind.RIGHTS, account=obj.pk, how=how)
        if "is_active" in changed:
            kind = Kind.LET_IN if obj.is_active else Kind.SUSPENSION
            note_event(kind, account=obj.pk, how="in the console")
        if "email" in changed:
            note_event(Kind.ADDRESS, account=obj.pk, how="changed in the console")

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        page = super().user_change_password(request, id, form_url)  # type: ignore[misc]
        if request.method == "POST" and page.status_code == 302:
            note_event(Kind.PASSWORD, account=int(id), how="changed in the console")
        return page


@admin.register(SecurityEvent)
class SecurityEventAdmin(EverybodysAdmin):
    """Whoever is gone is shown by number. A whole e-mail address also finds what was tried with it."""

    nothing_here = "Nobody has come in, and nothing that opens an account has changed."
    list_display = ("at", "kind", "how", "whom", "by", "address", "more")
    list_filter = ("kind", "at")
    search_fields = ("address", "login", "how")
    search_help_text = "An address of a computer, a whole e-mail address, or how"
    ordering = ("-at", "-pk")
    fields = readonly_fields = ("at", "kind", "how", "whom", "by", "address", "typed", "more")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[SecurityEvent]:
        rows: QuerySet[SecurityEvent] = super().get_queryset(request)
        people = User._base_manager
        return rows.annotate(
            email_of_account=Subquery(people.filter(pk=OuterRef("account")).values("email")),
            email_of_actor=Subquery(people.filter(pk=OuterRef("actor")).values("email")),
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if "@" not in search_term:
            found: tuple[QuerySet[Any], bool] = super().get_search_results(
                request, queryset, search_term
            )
            return found
        named = User._base_manager.filter(email__iexact=search_term.strip())
        is_theirs = Exists(named.filter(pk=OuterRef("account")))
        is_by_them = Exists(named.filter(pk=OuterRef("actor")))
        return queryset.filter(
            Q(is_theirs) | Q(is_by_them) | Q(login__in=hashes_of(search_term))
        ), False

    @admin.display(description="account", ordering="account")
    def whom(self, row: Any) -> str:
        return _name(row.account, row.email_of_account)

    @admin.display(description="done by", ordering="actor")
    def by(self, row: Any) -> str:
        return _name(row.actor, row.email_of_actor)

    @admin.display(description="fingerprint of the name that was typed", ordering="login")
    def typed(self, row: SecurityEvent) -> str:
        """Equal ones are the same name; the name itself is kept nowhere."""
        return row.login or "–"

    @admin.display(description="in that minute", ordering="num_more")
    def more(self, row: SecurityEvent) -> str:
        return f"and {row.num_more:,} more" if row.num_more else ""

    def heading(self, row: SecurityEvent) -> str:
        return f"{row.get_kind_display()}, {row.at:%Y-%m-%d %H:%M}"


def _name(pk: int | None, email: str | None) -> str:
    return "–" if pk is None else email or f"account {pk}"
