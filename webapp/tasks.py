"""Periodic chores of the shell."""

from celery import shared_task
from django.core.management import call_command


@shared_task(name="webapp.tasks.clear_sessions")  # type: ignore[untyped-decorator]
def clear_sessions() -> None:
    call_command("clearsessions")
