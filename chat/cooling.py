"""Who has to wait, for what policies have stopped of theirs."""

from datetime import datetime
from time import monotonic

from django.conf import settings
from django.utils import timezone

from chat.db import in_db
from moderation.models import Strike
from moderation.strikes import standing

FORGET_S = 10.0
"""So long one process may not know of a strike that another one has counted."""
_MAX_KNOWN = 10_000
_clean: dict[str, float] = {}  # users without strikes, and when that was seen: almost all of them


async def waits_until(user: str) -> datetime | None:
    """The end of the user's cool-down; None where there is none."""
    now_s = monotonic()
    if now_s - _clean.get(user, -FORGET_S) < FORGET_S:
        return None
    strikes = await in_db(_strikes_of)(user)
    if not strikes:
        if len(_clean) >= _MAX_KNOWN:
            _clean.clear()
        _clean[user] = now_s
        return None
    return standing(strikes, timezone.now(), settings.STRIKES).waits_until


def struck(user: str) -> None:
    """A strike was counted: it is to be looked up anew."""
    _clean.pop(user, None)


def _strikes_of(user: str) -> list[tuple[float, datetime]]:
    """What is older than ten half-lives is a thousandth of itself."""
    since = timezone.now() - 10 * settings.STRIKES.half_life
    rows = Strike.objects.filter(owner=int(user), lifted_at=None, created_at__gt=since)
    return list(rows.values_list("points", "created_at"))
