"""What the organisation's directory has done here, in the admin console."""

from django.contrib import admin

from webapp.models import ScimChange
from webapp.read_only_admin import ReadOnlyAdmin


@admin.register(ScimChange)
class ScimChangeAdmin(ReadOnlyAdmin):
    """Beside the log of what administrators change."""

    nothing_here = "No directory has changed anything here."
    list_display = ("at", "kind", "action", "name", "object_id", "change")
    list_filter = ("at", "kind", "action")
    search_fields = ("name", "change")
    ordering = ("-at", "-pk")
