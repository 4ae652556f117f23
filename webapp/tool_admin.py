"""Tools of servers in the admin console: which are offered, when a person is asked, what was changed
by their server since."""

import json
from hashlib import sha256
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html

from chat.models import ServerTool
from chat.service import tool_server_states
from chat.tools.servers.definitions import accept
from webapp.read_only_admin import RecordsAdmin

_READ = "tools_read"  # of a session: which changed definition was shown of which tool
_UNTIL_ASKED = "asked for in a moment"


class StandingFilter(admin.SimpleListFilter):
    title, parameter_name = "how it stands", "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("changed", "changed by its server"), ("off", "switched off"), ("gone", "gone")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        wanted = {
            "changed": {"proposed__isnull": False},
            "off": {"is_enabled": False},
            "gone": {"is_listed": False},
        }.get(self.value() or "")
        return queryset.filter(**wanted) if wanted else None


@admin.register(ServerTool)
class ServerToolAdmin(RecordsAdmin):
    """What servers say of their tools is theirs; when it is used is decided here."""

    nothing_here = (
        "No tool server has named a tool. VITRINE_MCP names the file that says which there are."
    )
    list_display = ("title", "server", "standing", "asks", "name")
    list_filter = (StandingFilter, "server", "asks")
    search_fields = ("name", "tool", "server")
    ordering = ("server", "tool")
    readonly_fields = ("name", "server", "tool", "standing", "told", "now_told")
    fields = ("name", "server", "tool", "standing", "is_enabled", "asks", "told", "now_told")
    actions = ("take", "switch_off", "switch_on")
    list_before_template = "admin/tool_servers.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {"tool_servers": tool_server_states(), "until_asked": _UNTIL_ASKED}
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def heading(self, row: ServerTool) -> str:
        return f"{row.title} of {row.server}"

    @admin.display(description="how it stands")
    def standing(self, row: ServerTool) -> str:
        if not row.is_listed:
            return "gone: its server names it no more"
        if row.proposed is not None:
            return "changed by its server: withheld until it is taken"
        return "offered" if row.is_enabled else "switched off"

    @admin.display(description="what models are told")
    def told(self, row: ServerTool) -> str:
        return _pretty(row.definition)

    @admin.display(description="what its server says now")
    def now_told(self, row: ServerTool) -> str:
        return "the same" if row.proposed is None else _pretty(row.proposed)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method == "GET" and (row := self.get_object(request, object_id)) is not None:
            read = request.session.get(_READ, {})
            request.session[_READ] = read | {str(row.pk): _mark_of(row)}
        response: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
        return response

    @admin.action(description="Take what their servers say now", permissions=["change"])
    def take(self, request: HttpRequest, rows: QuerySet[ServerTool]) -> HttpResponseRedirect:
        """Only what this operator has read: a server may say something else by now."""
        read = request.session.get(_READ, {})
        with transaction.atomic():
            changed = list(rows.filter(proposed__isnull=False).select_for_update())
            known = [row for row in changed if read.get(str(row.pk)) == _mark_of(row)]
            for row in known:
                accept(row)
        if unread := len(changed) - len(known):
            words = f"Open each first, to read what its server says now: {unread} of them stay."
            self.message_user(request, words, messages.WARNING)
        return self._done(request, known, "Took the changed definition.")

    @admin.action(description="Switch off", permissions=["change"])
    def switch_off(self, request: HttpRequest, rows: QuerySet[ServerTool]) -> HttpResponseRedirect:
        return self._switch(request, rows, is_enabled=False)

    @admin.action(description="Switch on", permissions=["change"])
    def switch_on(self, request: HttpRequest, rows: QuerySet[ServerTool]) -> HttpResponseRedirect:
        return self._switch(request, rows, is_enabled=True)

    def _switch(
        self, request: HttpRequest, rows: QuerySet[ServerTool], *, is_enabled: bool
    ) -> HttpResponseRedirect:
        found = list(rows.exclude(is_enabled=is_enabled))
        for row in found:
            row.is_enabled = is_enabled
            row.save(update_fields=["is_enabled", "updated_at"])
        return self._done(request, found, "Switched on." if is_enabled else "Switched off.")

    def _done(
        self, request: HttpRequest, rows: list[ServerTool], what: str
    ) -> HttpResponseRedirect:
        for row in rows:
            LogEntry.objects.log_actions(str(request.user.pk), [row], CHANGE, change_message=what)
        self.message_user(request, f"{what} {len(rows)} of them.", messages.SUCCESS)
        return HttpResponseRedirect(request.get_full_path())


def _mark_of(row: ServerTool) -> str:
    return sha256(json.dumps(row.proposed, sort_keys=True).encode()).hexdigest()


def _pretty(definition: dict[str, Any]) -> str:
    text = json.dumps(definition, indent=2, ensure_ascii=False)
    return format_html('<pre class="whitespace-pre-wrap" dir="ltr">{}</pre>', text)
