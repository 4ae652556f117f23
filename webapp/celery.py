"""The task queue: JSON only, and acknowledged late, so a killed worker loses no task.

Files are read from a queue of their own, behind all chores: a thousand of them hold none up for longer
than it takes to read one.

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
CHORES, READING = "vitrine", "vitrine-reading"  # queues
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


class SystemTask(Task):  # type: ignore[misc]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with as_system():
            return super().__call__(*args, **kwargs)


def _every(period_s: int, task: str, schedule: Any) -> dict[str, Any]:
    """What has waited until it is sent again is forgotten, or a worker that is long busy would do it for
    every time."""
    return {"task": task, "schedule": schedule, "options": {"expires": period_s}}


app = Celery("vitrine", task_cls=SystemTask)
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_transport_options={
        "global_keyprefix": "vitrine:celery:",
        # For who sends tasks, to a Redis that hangs. A worker waits for a task a second at a time.
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "queue_order_strategy": "priority",  # the first one until it is empty
    },
    broker_connection_retry_on_startup=True,
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue=CHORES,
    task_routes={"retrieval.tasks.read_version": {"queue": READING}},
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=True,  # they are delivered again
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    timezone="UTC",
    beat_schedule={
        "forget expired sessions": _every(
            _DAY, "webapp.tasks.clear_sessions", crontab(hour=3, minute=17)
        ),
        "suspend who has left the directory": _every(
            10 * _MINUTE, "webapp.tasks.sync_directory", crontab(minute="*/10")
        ),
        "suspend who was struck while the queue was away": _every(
            10 * _MINUTE, "webapp.tasks.reconsider_accounts", crontab(minute="*/10")
        ),
        "delete chats that are older than a tier keeps them": _every(
            _HOUR, "webapp.tasks.delete_old_chats", crontab(minute=53)
        ),
        "prune the events of ended runs": _every(
            _HOUR, "chat.tasks.prune_events", crontab(minute=23)
        ),
        "take up imports whose worker has died": _every(20, "chat.tasks.resume_imports", 20.0),
        "forget files that were not imported": _every(
            _HOUR, "chat.tasks.forget_old_imports", crontab(minute=41)
        ),
        "forget what callers have left": _every(
            _HOUR, "chat.tasks.forget_api_rows", crontab(minute=11)
        ),
        "forget what moderation decided long ago": _every(
            _DAY, "chat.tasks.forget_decisions", crontab(hour=4, minute=7)
        ),
        "forget the tokens of old answers": _every(
            _DAY, "chat.tasks.forget_prompts", crontab(hour=4, minute=27)
        ),
        "take up documents whose worker has died": _every(
            20, "retrieval.tasks.take_up_documents", 20.0
        ),
        "sweep documents": _every(_HOUR, "retrieval.tasks.sweep_documents", crontab(minute=47)),
        "sweep files": _every(_HOUR, "chat.tasks.sweep_files", crontab(minute=37)),
        "forget prompts with what may not be read any more": _every(
            10 * _MINUTE, "chat.tasks.forget_revoked", crontab(minute="*/10")
        ),
        "let go of deleted chats": _every(
            5 * _MINUTE, "chat.tasks.purge_deleted", crontab(minute="*/5")
        ),
        "let go of deleted messages": _every(
            5 * _MINUTE, "chat.tasks.purge_deleted_messages", crontab(minute="*/5")
        ),
    },
)
app.set_default()  # in every thread: views send tasks too
app.autodiscover_tasks()


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _leave_logging_to_django(**kwargs: Any) -> None:
    """A receiver keeps Celery from setting up its own."""
