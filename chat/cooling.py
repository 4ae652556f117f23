"""Who has to wait, for what policies have stopped of theirs."""

import logging
from collections.abc import Sequence
from datetime import datetime
from time import monotonic

from celery import current_app
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from chat.db import in_db
from chat.gathering import Gathering
from moderation.standings import strikes_of, with_strikes
from moderation.strikes import standing

logger = logging.getLogger(__name__)

FORGET_S = 10.0
"""So long one process may not know of a strike that another one has counted."""
_MAX_KNOWN = 10_000
_clean: dict[str, float] = {}  # users without strikes, and when that was seen: almost all of them


async def waits_until(user: str) -> datetime | None:
    """The end of the user's cool-down; None where there is none."""
    now_s = monotonic()
    if now_s - _clean.get(user, -FORGET_S) < FORGET_S:
        return None
    if not await _asking.ask(int(user)):
        if len(_clean) >= _MAX_KNOWN:
            _clean.clear()
        _clean[user] = now_s
        return None
    strikes = await in_db(strikes_of)(int(user))
    return standing(strikes, timezone.now(), settings.STRIKES).waits_until


async def _have_strikes(user_ids: Sequence[int]) -> Sequence[bool]:
    found = await in_db(with_strikes)(user_ids)
    return [user_id in found for user_id in user_ids]


_asking: Gathering[int, bool] = Gathering(_have_strikes)


def struck(user: str) -> None:
    """A strike was counted: it is to be looked up anew, and may be one too many for the account, which
    is the shell's to close (webapp/strike_suspensions.py). In the user's scope; may wait for Redis."""
    _clean.pop(user, None)
    if not standing(strikes_of(int(user)), timezone.now(), settings.STRIKES).is_too_much:
        return
    try:
        current_app.send_task("webapp.tasks.reconsider_account", [int(user)], retry=False)
    except OperationalError:
        logger.exception("user %s has too many strikes, and the task queue is away", user)
