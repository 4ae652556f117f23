"""Accounts that strikes close, and who opens them again: a reviewer, and nobody by waiting.

Whether an account is closed is `is_active`, as ever; the row of moderation.Suspension beside it says
that it was strikes. In the system's scope.
"""

import logging
from typing import Any

from django.db import transaction
from django.utils import timezone

from moderation.models import Strike, Suspension
from moderation.standings import standing_of, struck_since_closed
from webapp.administrators import is_last_administrator, locked_with_administrators
from webapp.directory_links import has_left
from webapp.models import SignIn, User
from webapp.security_events import Kind, note_event
from webapp.sign_ins import end_sign_ins
from webapp.suspensions import end_of_strikes, is_disabled_by_scim, open_suspension

logger = logging.getLogger(__name__)


def reconsider(user_id: int) -> None:
    """Strikes were counted: close the account that has too many."""
    if not standing_of(user_id).is_too_much:
        return
    with transaction.atomic():
        user = locked_with_administrators(User.objects.all(), user_id)
        if user is None or not _close(user):
            return
    end_sign_ins(SignIn.objects.filter(user=user_id))
    logger.warning("user %s has too many strikes, and is suspended", user_id)


def reconsider_all() -> None:
    """The same of everybody: what was counted while the task queue was away asked for no look."""
    for user_id in struck_since_closed():
        reconsider(user_id)


def let_in_again(user_id: int) -> None:
    """Some strikes were lifted: open the account that was closed by them, and has too many no more.
    Where none was lifted nothing opens it, though points decay."""
    if standing_of(user_id).is_too_much:
        return
    with transaction.atomic():
        user = locked_with_administrators(User.objects.all(), user_id)
        if user is not None:
            _open(user)


def let_in(suspension: Suspension, reviewer: Any, notes: str = "") -> None:
    """What counted against its owner counts no more. Whom another has suspended too stays out."""
    with transaction.atomic():
        user = locked_with_administrators(User.objects.all(), suspension.owner_id)
        if user is None:
            return
        keep_out(suspension, reviewer, notes)
        strikes = Strike.objects.filter(owner=user.pk, lifted_at=None)
        strikes.update(lifted_at=timezone.now())
        _open(user)


def keep_out(suspension: Suspension, reviewer: Any, notes: str = "") -> None:
    """The suspension was right: its owner reads the notes."""
    Suspension.objects.filter(pk=suspension.pk).update(
        reviewer=reviewer, reviewed_at=timezone.now(), notes=notes
    )


def _close(user: User) -> bool:
    if not user.is_active:
        return False
    if is_last_administrator(user):
        logger.error("the last administrator, user %s, has too many strikes: kept", user.pk)
        return False
    end_of_strikes(user)  # of before: somebody has opened the account since
    User.objects.filter(pk=user.pk).update(is_active=False)
    Suspension.objects.create(owner=user, points=standing_of(user.pk).points)
    note_event(Kind.SUSPENSION, account=user.pk, how="by strikes")
    return True


def _open(user: User) -> None:
    if open_suspension(user) is None:
        return
    end_of_strikes(user)
    if is_disabled_by_scim(user) or has_left(user):
        return
    User.objects.filter(pk=user.pk).update(is_active=True)
    note_event(Kind.LET_IN, account=user.pk, how="after strikes")
    logger.info("user %s has not too many strikes any more, and may come in", user.pk)
