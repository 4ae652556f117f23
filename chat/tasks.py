"""Periodic chores of the chat; each is in the system's scope and may run twice."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from chat import run_log

KEEP_EVENTS = timedelta(hours=1)
"""For followers that were away when the answer ended; later ones get the message itself."""


@shared_task(name="chat.tasks.prune_events")  # type: ignore[untyped-decorator]
def prune_events() -> None:
    """Drop the events of ended runs; what they said is in the message."""
    while run_log.prune(timezone.now() - KEEP_EVENTS):
        pass
