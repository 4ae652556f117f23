"""The announcement above all chats, in the admin console."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from chat.announcements import forget_announcement
from chat.models import Announcement
from webapp.one_row_admin import OneRowAdmin

_ABOUT = (
    "Stands above every chat, for everybody who is signed in, from the next page that they open."
    " Whoever has read it can put it away, and sees it again once it has changed here."
)


@admin.register(Announcement)
class AnnouncementAdmin(OneRowAdmin):
    fields = ("text", "tone", "until")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": self.fields, "description": _ABOUT})]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs["help_texts"] = {
            "text": "A sentence or two. Addresses become links.",
            "until": "Empty: until it is deleted here.",
        }
        return super().get_form(request, obj, **kwargs)

    def forget(self) -> None:
        forget_announcement()
