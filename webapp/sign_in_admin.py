"""Where people are signed in, in the admin console: an administrator sees it, and can end it."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect

from webapp.models import SignIn
from webapp.read_only_admin import EverybodysAdmin
from webapp.sign_ins import end_sign_ins, living
from webapp.user_agents import browser_of, system_of


@admin.register(SignIn)
class SignInAdmin(EverybodysAdmin):
    """What names a session to the browser is nowhere here."""

    nothing_here = "Nobody is signed in."
    list_display = ("user", "browser", "address", "since", "last_seen_at")
    list_display_links = ("browser",)
    list_filter = ("last_seen_at", "user__tier", "user__is_staff")
    show_full_result_count = False
    list_select_related = ("user",)
    search_fields = ("user__email", "user__name", "address", "user_agent")
    ordering = ("-last_seen_at",)
    fields = ("user", "browser", "user_agent", "address", "since", "last_seen_at")
    actions = ("end",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[SignIn]:
        return living(super().get_queryset(request))

    def has_end_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("webapp.delete_signin")

    @admin.display(description="browser", ordering="user_agent")
    def browser(self, row: SignIn) -> str:
        known = (browser_of(row.user_agent), system_of(row.user_agent))
        return " on ".join(name for name in known if name) or "Unknown browser"

    @admin.display(description="since", ordering="created_at")
    def since(self, row: SignIn) -> Any:
        return row.created_at

    @admin.action(description="End these: sign them out", permissions=["end"])
    def end(self, request: HttpRequest, rows: QuerySet[SignIn]) -> HttpResponseRedirect:
        for row in rows.select_related("user"):
            where = f"{row.user.email} ({self.browser(row)}, {row.address or 'no address'})"
            LogEntry.objects.log_actions(
                str(request.user.pk), [row], DELETION, change_message=f"Signed out {where}."
            )
        num_ended = end_sign_ins(rows)
        self.message_user(request, f"Signed out: {num_ended}.", messages.SUCCESS)
        return HttpResponseRedirect(request.get_full_path())
