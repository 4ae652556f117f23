"""The task queue: JSON only, and acknowledged late, so a killed worker loses no task.

A task may therefore run twice and has to be idempotent. Tasks run in the system's scope, since no
user asks for them; one that works for a user enters that user's scope itself.
"""

import logging
import os
from typing import Any

from celery import Celery, Task, signals
from celery.schedules import crontab
from django.conf import settings

from webapp.tenancy import as_system

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

logger = logging.getLogger(__name__)

SOCKET_TIMEOUT_S = 5.0


class SystemTask(Task):  # type: ignore[misc]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with as_system():
            return super().__call__(*args, **kwargs)


app = Celery("vitrine", task_cls=SystemTask)
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_transport_options={
        "global_keyprefix": "vitrine:celery:",
        # For who sends tasks, to a Redis that hangs. A worker waits for a task a second at a time.
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
    },
    broker_connection_retry_on_startup=True,
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="vitrine",
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=True,  # they are delivered again
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    timezone="UTC",
    beat_schedule={
        "forget expired sessions": {
            "task": "webapp.tasks.clear_sessions",
            "schedule": crontab(hour=3, minute=17),
        },
        "suspend who has left the directory": {
            "task": "webapp.tasks.sync_directory",
            "schedule": crontab(minute="*/10"),
        },
        "suspend who was struck while the queue was away": {
            "task": "webapp.tasks.reconsider_accounts",
            "schedule": crontab(minute="*/10"),
        },
        "prune the events of ended runs": {
            "task": "chat.tasks.prune_events",
            "schedule": crontab(minute=23),
        },
        "take up imports whose worker has died": {
            "task": "chat.tasks.resume_imports",
            "schedule": 20.0,
        },
        "forget files that were not imported": {
            "task": "chat.tasks.forget_old_imports",
            "schedule": crontab(minute=41),
        },
        "forget what callers have left": {
            "task": "chat.tasks.forget_api_rows",
            "schedule": crontab(minute=11),
        },
        "forget what moderation decided long ago": {
            "task": "chat.tasks.forget_decisions",
            "schedule": crontab(hour=4, minute=7),
        },
        "take up documents whose worker has died": {
            "task": "retrieval.tasks.take_up_documents",
            "schedule": 20.0,
        },
        "sweep documents": {
            "task": "retrieval.tasks.sweep_documents",
            "schedule": crontab(minute=47),
        },
        "sweep files": {
            "task": "chat.tasks.sweep_files",
            "schedule": crontab(minute=37),
        },
        "forget prompts with what may not be read any more": {
            "task": "chat.tasks.forget_revoked",
            "schedule": crontab(minute="*/10"),
        },
        "let go of deleted chats": {
            "task": "chat.tasks.purge_deleted",
            "schedule": crontab(minute="*/5"),
        },
        "let go of deleted messages": {
            "task": "chat.tasks.purge_deleted_messages",
            "schedule": crontab(minute="*/5"),
        },
    },
)
app.set_default()  # in every thread: views send tasks too
app.autodiscover_tasks()


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _leave_logging_to_django(**kwargs: Any) -> None:
    """A receiver keeps Celery from setting up its own."""
