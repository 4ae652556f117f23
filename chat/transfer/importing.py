"""An import from its upload to its report: check first, then import; each chat wholly or not at all.

Both readings go through the whole file. A worker that dies leaves a lease that runs out; the next one
begins at the file's start and finds by their origins what is there already, so that nothing is
imported twice and nothing is left out. Two imports of one file at once end the same way.
"""

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, IntegrityError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from chat import history
from chat.errors import BadRequest, Conflict, NotFound
from chat.ids import uuid7
from chat.models import (
    WORKING_IMPORTS,
    ChatImport,
    ChatOrigin,
    Conversation,
    ImportStatus,
)
from chat.transfer import portable
from chat.transfer.plant import plant
from chat.transfer.portable import Chat, checked, content_hash
from chat.transfer.reading import BadFile, Skipped, read_chats

LEASE_S = 60.0
PROGRESS_S = 0.5
KEEP_FILES = timedelta(days=1)
MAX_LISTED = 200
MAX_WAITING = 5  # imports of one user that are not over
MAX_ATTEMPTS = 3  # at one reading of a file: one that ends its workers would be tried for ever


class LostLease(Exception):
    """Another worker has taken the import up, or its owner has removed it."""


@dataclass
class Report:
    """`num_new` chats are (or would be) imported; `skipped` lists the first that are not, with why."""

    source: str = ""
    num_chats: int = 0
    num_messages: int = 0
    num_new: int = 0
    num_known: int = 0
    num_skipped: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def skip(self, skipped: Skipped) -> None:
        self.num_skipped += 1
        if len(self.skipped) < MAX_LISTED:
            self.skipped.append({"title": skipped.title, "reason": skipped.reason})

    def value(self) -> dict[str, Any]:
        return {**vars(self), "notes": dict(self.notes)}


# --- the owner's side ------------------------------------------------------------------------------


def folder() -> Path:
    path: Path = settings.DATA_DIR / "imports"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def path_of(import_id: UUID) -> Path:
    return folder() / import_id.hex


def begin(user: Any, import_id: UUID, file_name: str, size_bytes: int) -> ChatImport:
    """The file is there. Raises Conflict when the files of too many of the user's lie here."""
    unfinished = (*WORKING_IMPORTS, ImportStatus.CHECKED)
    if ChatImport.objects.filter(owner_id=user.pk, status__in=unfinished).count() >= MAX_WAITING:
        text = gettext(
            "%(n)s imports of yours are not over. Start or cancel one, or wait for one to end."
        )
        raise Conflict(text % {"n": MAX_WAITING})
    return ChatImport.objects.create(
        id=import_id,
        owner_id=user.pk,
        file_name=file_name[:200],
        size_bytes=size_bytes,
        lease_until=_time_to_begin(),
    )


def import_for(user: Any, import_id: UUID) -> ChatImport:
    """Raises NotFound."""
    row = ChatImport.objects.filter(owner_id=user.pk, pk=import_id).first()
    if row is None:
        raise NotFound("import")
    return row


def start(user: Any, import_id: UUID) -> ChatImport:
    """The owner has seen the report and wants the chats. Twice is once. Raises NotFound, BadRequest."""
    row = import_for(user, import_id)
    rows = ChatImport.objects.filter(pk=row.pk, status=ImportStatus.CHECKED)
    if rows.update(
        status=ImportStatus.IMPORTING,
        lease_owner="",
        lease_until=_time_to_begin(),
        attempts=0,
        report={},
    ):
        row.refresh_from_db()
    elif row.status in (ImportStatus.CHECKING, ImportStatus.FAILED):
        raise BadRequest(gettext("The file has not been checked."))
    return row


def _time_to_begin() -> datetime:
    """Until then the task that is about to be sent is waited for; no worker has the lease."""
    return timezone.now() + timedelta(seconds=LEASE_S)


def remove(user: Any, import_id: UUID) -> None:
    """Forget the import and its file; what is imported stays. Raises NotFound."""
    row = import_for(user, import_id)
    row.delete()
    path_of(import_id).unlink(missing_ok=True)


# --- the worker's side -----------------------------------------------------------------------------


def work(import_id: UUID) -> None:
    """Check or import, as the row's status says; nothing if somebody else does it."""
    me = secrets.token_hex(16)
    row = _claim(import_id, me)
    if row is None:
        return
    if row.attempts > MAX_ATTEMPTS:
        words = f"It was begun {MAX_ATTEMPTS} times, and came to no end."
        _finish(row, me, ImportStatus.FAILED, error=words)
        return
    try:
        report = _read(row, me, is_import=row.status == ImportStatus.IMPORTING)
    except LostLease:
        return
    except (BadFile, FileNotFoundError) as error:
        words = str(error) if isinstance(error, BadFile) else "The file is no longer there."
        _finish(row, me, ImportStatus.FAILED, error=words)
    else:
        is_done = row.status == ImportStatus.IMPORTING
        _finish(row, me, ImportStatus.DONE if is_done else ImportStatus.CHECKED, report=report)


def _claim(import_id: UUID, me: str) -> ChatImport | None:
    now = timezone.now()
    with transaction.atomic():
        row = ChatImport.objects.select_for_update().filter(pk=import_id).first()
        if row is None or row.status not in WORKING_IMPORTS:
            return None
        if row.lease_owner and row.lease_until is not None and row.lease_until > now:
            return None
        row.lease_owner, row.lease_until = me, now + timedelta(seconds=LEASE_S)
        row.attempts += 1
        row.save(update_fields=["lease_owner", "lease_until", "attempts"])
    return row


def _read(row: ChatImport, me: str, *, is_import: bool) -> Report:
    report = Report()
    told_s = 0.0
    for found in read_chats(path_of(row.pk)):
        if isinstance(found, Skipped):
            report.skip(found)
        else:
            _count(report, found)
            _take(row, found, report, is_import=is_import)
        if monotonic() - told_s > PROGRESS_S:
            told_s = monotonic()
            _hold(row, me, report=report.value())
    return report


def _count(report: Report, chat: Chat) -> None:
    report.source = report.source or chat.source
    report.num_chats += 1
    report.num_messages += len(chat.messages)
    report.notes.update(chat.notes)


def _take(row: ChatImport, chat: Chat, report: Report, *, is_import: bool) -> None:
    digest = content_hash(chat)
    known = _known(row, chat, digest)
    if known is not None:
        is_ours = is_import and known.chat_import_id == row.pk  # before this worker's time
        report.num_new += is_ours
        report.num_known += not is_ours
    elif _is_original(row.owner_id, chat, digest):
        report.num_known += 1
    elif not is_import or _import(row, chat, digest, report):
        report.num_new += 1


def _known(row: ChatImport, chat: Chat, digest: str) -> ChatOrigin | None:
    return _origins(row, chat, digest).filter(conversation__deleted_at=None).first()


def _origins(row: ChatImport, chat: Chat, digest: str) -> QuerySet[ChatOrigin]:
    """Also those of chats that were deleted, and are not gone yet."""
    rows = ChatOrigin.objects.filter(owner_id=row.owner_id)
    return rows.filter(origin=chat.origin, content_hash=digest)


def _is_original(owner_id: Any, chat: Chat, digest: str) -> bool:
    """Whether the chat was exported from this very account and is still there as it was."""
    try:
        original_id = UUID(chat.id)
    except ValueError:
        return False
    if chat.source != "vitrine":
        return False
    rows = Conversation.objects.filter(owner_id=owner_id, pk=original_id, deleted_at=None)
    original = rows.first()
    if original is None:
        return False
    messages = history.all_messages(original)
    try:
        return content_hash(checked(portable.chat_of(original, messages))) == digest
    except portable.BadChat:
        return False


def _import(row: ChatImport, chat: Chat, digest: str, report: Report) -> bool:
    """One chat, in one transaction. False: it is known, or cannot be stored."""
    conversation_id = uuid7()
    try:
        with transaction.atomic():
            # What was deleted gives its place to what is wanted back.
            _origins(row, chat, digest).filter(conversation__deleted_at__isnull=False).delete()
            # First, so that of two imports at once the second waits here and then gives up.
            ChatOrigin.objects.create(
                conversation_id=conversation_id,
                owner_id=row.owner_id,
                chat_import_id=row.pk,
                origin=chat.origin,
                content_hash=digest,
            )
            plant(row.owner_id, chat, conversation_id)
    except IntegrityError:
        if _known(row, chat, digest):
            report.num_known += 1
        elif ChatImport.objects.filter(pk=row.pk).exists():
            report.skip(Skipped(chat.title, "The database cannot store it."))
        else:
            raise LostLease from None
    except OperationalError:
        raise  # the database is away: the task comes again
    except DatabaseError:
        report.skip(Skipped(chat.title, "The database cannot store it."))
    else:
        return True
    return False


def _hold(row: ChatImport, me: str, **changes: Any) -> None:
    until = timezone.now() + timedelta(seconds=LEASE_S)
    rows = ChatImport.objects.filter(pk=row.pk, lease_owner=me)
    if not rows.update(lease_until=until, **changes):
        raise LostLease


def _finish(
    row: ChatImport, me: str, status: str, *, report: Report | None = None, error: str = ""
) -> None:
    changes: dict[str, Any] = {"status": status, "error": error[:300], "lease_until": None}
    if report is not None:
        changes["report"] = report.value()
    is_over = status != ImportStatus.CHECKED
    if is_over:
        changes["finished_at"] = timezone.now()
    rows = ChatImport.objects.filter(pk=row.pk, lease_owner=me)
    if rows.update(**changes) and is_over:
        path_of(row.pk).unlink(missing_ok=True)


def lost() -> Iterator[UUID]:
    """Imports that wait for a worker: theirs has died, or the broker has lost the task."""
    rows = ChatImport.objects.filter(status__in=WORKING_IMPORTS, lease_until__lt=timezone.now())
    yield from rows.values_list("pk", flat=True)


def forget_old() -> None:
    """Files that nobody has started or that were uploaded without a row, after a day."""
    oldest = timezone.now() - KEEP_FILES
    ChatImport.objects.filter(status=ImportStatus.CHECKED, created_at__lt=oldest).update(
        status=ImportStatus.FAILED, error="It was not started within a day, and the file is gone."
    )
    over = (ImportStatus.DONE, ImportStatus.FAILED)
    unfinished = ChatImport.objects.exclude(status__in=over).values_list("pk", flat=True)
    waiting = {import_id.hex for import_id in unfinished}
    for path in folder().iterdir():
        if path.name not in waiting and path.stat().st_mtime < oldest.timestamp():
            path.unlink(missing_ok=True)
