"""Which announcement stands above the chats of a request, if any."""

from time import monotonic

from django.http import HttpRequest
from django.utils import timezone

from chat.announcement_models import Announcement

COOKIE = "announcement"
"""The key of the one that this browser's reader has put away (announcement.js)."""
_ASKED_EVERY_S = 10.0

_known: tuple[float, Announcement | None] | None = None  # until when, and which


def announcement_for(request: HttpRequest) -> Announcement | None:
    """Not one that its reader has put away. What changed in the console counts within ten seconds."""
    global _known
    if _known is None or monotonic() >= _known[0]:
        _known = (monotonic() + _ASKED_EVERY_S, Announcement.objects.first())
    found = _known[1]
    if found is None or (found.until is not None and found.until <= timezone.now()):
        return None
    return None if request.COOKIES.get(COOKIE) == found.key else found


def forget_announcement() -> None:
    """Ask anew: this process has just changed it."""
    global _known
    _known = None
