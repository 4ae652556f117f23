"""Share links in the admin console: that there are such, never what they show."""

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect

from chat.models import Share
from chat.sharing import links_revoked
from webapp.read_only_admin import EverybodysAdmin


@admin.register(Share)
class ShareAdmin(EverybodysAdmin):
    """Neither the address of a link, nor its title, nor the chat behind it is anywhere here."""

    nothing_here = "Nobody has shared a chat."
    list_display = ("owner", "kind", "created_at", "expires_at", "opens")
    list_filter = ("kind", "created_at", "expires_at", "owner__is_active")
    list_select_related = ("owner",)
    list_display_links = None
    search_fields = ("owner__email", "owner__name")
    ordering = ("-created_at", "-pk")
    fields = readonly_fields = ("owner", "kind", "created_at", "expires_at")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Share]:
        rows: QuerySet[Share] = super().get_queryset(request)
        return rows.defer("title", "shown_name", "token_hash", "sealed_token")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("chat.delete_share")

    @admin.display(description="opens", boolean=True)
    def opens(self, row: Share) -> bool:
        return row.owner.is_active and not row.has_ended

    @admin.action(description="Revoke these: they open nothing any more", permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: QuerySet[Share]) -> HttpResponseRedirect:
        found = list(rows.select_related("owner"))
        for row in found:
            LogEntry.objects.log_actions(
                str(request.user.pk),
                [row],
                DELETION,
                change_message=f"Revoked a link of {row.owner.email}.",
            )
            links_revoked.send(Share, owner_id=row.owner_id, number=1)
        num_revoked, _ = Share.objects.filter(pk__in=[row.pk for row in found]).delete()
        self.message_user(request, f"Revoked: {num_revoked}.", messages.SUCCESS)
        return HttpResponseRedirect(request.get_full_path())
