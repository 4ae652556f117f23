"""Periodic chores of the chat; each is in the system's scope and may run twice."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from chat import (
    answer_cache,
    attached_files,
    decisions,
    file_store,
    files,
    holds,
    idempotency,
    library,
    responses_store,
    revoked,
    run_log_reading,
    tree,
    turns,
)
from chat.transfer import importing

KEEP_EVENTS = timedelta(hours=1)
"""For followers that were away when the answer ended; later ones get the message itself."""

KEEP_UNSENT = timedelta(days=7)
"""For a message that waits in somebody's browser, with what is attached to it."""

KEEP_DELETED = timedelta(minutes=10)
"""For those who want something back; a page offers it for some seconds, and may be slow or offline."""


@shared_task(name="chat.tasks.prune_events")  # type: ignore[untyped-decorator]
def prune_events() -> None:
    """Drop the events of ended runs; what they said is in the message."""
    while run_log_reading.prune(timezone.now() - KEEP_EVENTS):
        pass


@shared_task(name="chat.tasks.purge_deleted_messages")  # type: ignore[untyped-decorator]
def purge_deleted_messages() -> None:
    """Drop messages for good that were deleted, and whose deletion nobody has undone."""
    while tree.purge(timezone.now() - KEEP_DELETED):
        pass


@shared_task(name="chat.tasks.work_on_import")  # type: ignore[untyped-decorator]
def work_on_import(import_id: str) -> None:
    """Check or import an uploaded file."""
    importing.work(UUID(import_id))


@shared_task(name="chat.tasks.resume_imports")  # type: ignore[untyped-decorator]
def resume_imports() -> None:
    """Take up imports whose worker has died: Redis gives their tasks back only after an hour."""
    for import_id in importing.lost():
        work_on_import.delay(str(import_id))


@shared_task(name="chat.tasks.forget_old_imports")  # type: ignore[untyped-decorator]
def forget_old_imports() -> None:
    importing.forget_old()


@shared_task(name="chat.tasks.purge_deleted")  # type: ignore[untyped-decorator]
def purge_deleted() -> None:
    """Let go of chats that were deleted a while ago, with everything that belongs to them."""
    while library.purge(timezone.now() - KEEP_DELETED):
        pass


@shared_task(name="chat.tasks.forget_api_rows")  # type: ignore[untyped-decorator]
def forget_api_rows() -> None:
    """Drop what callers of /v1 have left and whose time is over."""
    responses_store.forget_old()
    idempotency.forget_old()
    holds.let_go_of_expired()
    answer_cache.forget_old()


@shared_task(name="chat.tasks.forget_decisions")  # type: ignore[untyped-decorator]
def forget_decisions() -> None:
    """Drop what moderation decided long ago."""
    decisions.forget_old()


@shared_task(name="chat.tasks.forget_prompts")  # type: ignore[untyped-decorator]
def forget_prompts() -> None:
    """Drop the token ids of answers that are older than they are kept."""
    if settings.PROMPT_DAYS:
        turns.forget(timezone.now() - timedelta(days=settings.PROMPT_DAYS))


@shared_task(name="chat.tasks.forget_revoked")  # type: ignore[untyped-decorator]
def forget_revoked() -> None:
    """Drop prompts that hold what their readers may not read any more."""
    revoked.forget_prompts()


@shared_task(name="chat.tasks.sweep_files")  # type: ignore[untyped-decorator]
def sweep_files() -> None:
    """Drop files of /v1 whose time is over, what was attached and never sent, and what a crash has left
    on the disk."""
    files.forget_old()
    attached_files.drop_unsent(timezone.now() - KEEP_UNSENT)
    file_store.sweep()
