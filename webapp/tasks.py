"""Periodic chores of the shell."""

import logging

from celery import shared_task
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from chat.retention import delete_old
from webapp.models import SecurityEvent
from webapp.security_events import forget_old_events, note_event
from webapp.sign_ins import forget_dead_sign_ins

logger = logging.getLogger(__name__)


@shared_task(name="webapp.tasks.clear_sessions")  # type: ignore[untyped-decorator]
def clear_sessions() -> None:
    call_command("clearsessions")
    forget_dead_sign_ins()
    forget_old_events()


@shared_task(name="webapp.tasks.delete_old_chats")  # type: ignore[untyped-decorator]
def delete_old_chats() -> None:
    """By each tier's `chat_days`; the trail tells whose went."""
    for (account, days), number in delete_old(timezone.now()).items():
        chats = f"{number} chat{'s' if number > 1 else ''}"
        how = f"{chats}, {days} days after the last message"
        note_event(SecurityEvent.Kind.RETENTION, account=account, how=how)


@shared_task(name="webapp.tasks.reconsider_account")  # type: ignore[untyped-decorator]
def reconsider_account(user_id: int) -> None:
    """Somebody's strikes have changed."""
    from webapp.strike_suspensions import reconsider

    reconsider(user_id)


@shared_task(name="webapp.tasks.reconsider_accounts")  # type: ignore[untyped-decorator]
def reconsider_accounts() -> None:
    from webapp.strike_suspensions import reconsider_all

    reconsider_all()


@shared_task(name="webapp.tasks.sync_directory")  # type: ignore[untyped-decorator]
def sync_directory() -> None:
    """Does nothing without a directory, nor where it does not answer."""
    if settings.DIRECTORY is None:
        return
    from webapp.directory import DirectoryUnavailable
    from webapp.directory_sync import TooManyGone, sync

    try:
        sync(settings.DIRECTORY)
    except (DirectoryUnavailable, TooManyGone) as error:
        logger.error("people of the directory are not up to date: %s", error)
