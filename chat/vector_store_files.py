"""Files of vector stores, as programs know documents, and batches of them. Synchronous.

A file of /v1/files is copied into the store, where it stays when that one is deleted. Documents that
people have brought there are files of the store too, by ids of their own.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone

from chat import file_store, files
from chat.api_errors import ApiError
from chat.ids import uuid7
from chat.models import ApiFile
from chat.values import Value
from chat.vector_store_schemas import VectorStoreFileIn
from chat.vector_stores import (
    CANCELLED,
    Counts,
    Cursor,
    counts_of,
    find,
    find_to_write,
    public_id,
    status_of,
)
from retrieval import document_files, documents
from retrieval.documents import Brought
from retrieval.models import (
    UNFINISHED,
    Collection,
    Document,
    FileBatch,
    Version,
    VersionState,
)
from retrieval.system_rights import system_rights

BATCH_PREFIX = "vsfb_"
_STATES: dict[str, Q] = {
    "in_progress": Q(newest_state__in=UNFINISHED),
    "completed": Q(newest_state=VersionState.READY),
    "failed": Q(newest_state=VersionState.FAILED) & ~Q(newest_reason=CANCELLED),
    "cancelled": Q(newest_state=VersionState.FAILED, newest_reason=CANCELLED),
}


# --- attaching --------------------------------------------------------------------------------------


_Given = dict[UUID, tuple[ApiFile, VectorStoreFileIn]]


@dataclass(slots=True)
class _Files:
    """Versions whose files lie in their places, by the ids of the files that they are copies of; what is
    not taken goes again."""

    made: dict[UUID, Brought] = field(default_factory=dict)
    taken: set[UUID] = field(default_factory=set)

    def make(self, source: ApiFile) -> None:
        """Raises ApiError where what was in the file is gone."""
        version_id = uuid7()
        path = file_store.path_of(source.pk)
        copy = Brought(version_id, source.name, source.size_bytes)
        self.made[source.pk] = copy
        try:
            self.made[source.pk] = replace(copy, sha256=_sha256(path))
            _copy(path, document_files.path_of(version_id))
        except FileNotFoundError:
            raise ApiError(404, "not_found", "What was in this file is gone.", "file_id") from None

    def take(self, source: ApiFile) -> Brought:
        """Raises ApiError."""
        if source.pk not in self.made:  # something has changed since it was looked at
            self.make(source)
        self.taken.add(source.pk)
        return self.made[source.pk]


@contextmanager
def _copies() -> Iterator[_Files]:
    """If it does not end well, what was taken goes too."""
    files_ = _Files()
    try:
        yield files_
    except BaseException:
        files_.taken.clear()
        raise
    finally:
        for id_, copy in files_.made.items():
            if id_ not in files_.taken:
                document_files.remove(copy.version_id)


def attach(
    user: Any,
    collection: Collection,
    wanted: Sequence[VectorStoreFileIn],
    param: str,
    batch: FileBatch | None = None,
) -> list[UUID]:
    """Copy files into a store that may be written, each once; one that is there is noted anew, and read
    anew where it has failed or is to be cut differently. All of them, or none: ids of the versions that
    are to be read now. `batch` is not saved yet. Raises ApiError and RetrievalError.
    """
    sources = files.find_all(user, [one.file_id for one in wanted], param)
    # An id may be written in several ways, and each of them names the one file.
    given = {source.pk: (source, one) for source, one in zip(sources, wanted, strict=True)}
    with _copies() as copies:
        # Thousands of files take a while: nobody waits for that at the lock.
        there = _known(collection, list(given))
        for source, one in given.values():
            if _must_be_read(there.get(source.pk), one):
                copies.make(source)
        with transaction.atomic():
            return _attach(user, collection, given, copies, batch)


def _attach(
    user: Any, collection: Collection, given: _Given, copies: _Files, batch: FileBatch | None
) -> list[UUID]:
    # Else only the owner could lock it. Of a file that comes twice at once one is new.
    with system_rights():
        rows = Collection.objects.select_for_update(no_key=True)
        rows.filter(pk=collection.pk).first()
    if batch is not None:
        batch.save(force_insert=True)
    there = _known(collection, list(given))
    new = [copies.take(source) for source, _ in given.values() if source.pk not in there]
    added = iter(documents.bring_all(user, collection.pk, new) if new else [])
    changed, to_read = [], []
    for source, one in given.values():
        known = there.get(source.pk)
        if known is None:
            document, version = next(added)
            to_read.append(version.pk)
        else:
            document = known
            if _must_be_read(known, one):
                # The same file is a new version of what is to be read anew.
                copy = replace(copies.take(source), sha256="")
                to_read.append(documents.replace(user, known.pk, copy)[1].pk)
        changed.append(_noted(document, source.pk, one, batch))
    Document.objects.bulk_update(changed, _NOTED, batch_size=500)
    return to_read


def _known(collection: Collection, file_ids: Sequence[UUID]) -> dict[UUID | None, Document]:
    """With their newest versions, by the ids of the files."""
    rows = Document.objects.filter(collection=collection, file_id__in=file_ids)
    return {row.file_id: row for row in documents.with_newest(rows)}


def _copy(source: Path, target: Path) -> None:
    """The same bytes on the disk where it can be: neither is ever changed. Raises FileNotFoundError."""
    try:
        os.link(source, target)
        os.utime(target)  # it is as old as the other, and old ones without rows are swept
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _must_be_read(known: Document | None, wanted: VectorStoreFileIn) -> bool:
    if known is None:
        return True
    newest: Version = known.newest[0]  # type: ignore[attr-defined]
    if newest.state == VersionState.FAILED:
        return True
    return _sizes(wanted) != (known.chunk_tokens, known.chunk_overlap_tokens)


def _sizes(wanted: VectorStoreFileIn) -> tuple[int | None, int | None]:
    return wanted.chunking_strategy.sizes if wanted.chunking_strategy else (None, None)


_NOTED = ("file_id", "attributes", "chunk_tokens", "chunk_overlap_tokens", "batch")


def _noted(
    document: Document, file_id: UUID, wanted: VectorStoreFileIn, batch: FileBatch | None
) -> Document:
    document.file_id = file_id
    document.attributes = wanted.attributes or {}
    document.chunk_tokens, document.chunk_overlap_tokens = _sizes(wanted)
    document.batch = batch or document.batch
    return document


# --- one file ---------------------------------------------------------------------------------------


def find_file(collection: Collection, file_id: str) -> Document:
    """With its newest version. Raises ApiError: 404."""
    row_id = files.row_id_of(file_id, files.PREFIX)
    row = None
    if row_id is not None:
        rows = Document.objects.filter(collection=collection)
        row = documents.with_newest(rows.filter(_is_called(row_id))).first()
    if row is None:
        raise _not_there(file_id)
    return row


def _not_there(file_id: str) -> ApiError:
    message = f"There is no file with the id '{file_id}' in this vector store."
    return ApiError(404, "not_found", message, "file_id")


def _is_called(id_: UUID) -> Q:
    return Q(file_id=id_) | Q(pk=id_, file_id=None)


def public_file_id(row: Document) -> str:
    return f"{files.PREFIX}{(row.file_id or row.pk).hex}"


def set_attributes(user: Any, store_id: str, file_id: str, attributes: dict[str, Any]) -> Document:
    """Raises ApiError."""
    row = find_file(find_to_write(user, store_id), file_id)
    row.attributes = attributes
    if not Document.objects.filter(pk=row.pk).update(attributes=attributes):
        raise _not_there(file_id)
    return row


def delete_file(user: Any, store_id: str, file_id: str) -> None:
    """Out of the store; the file under /v1/files stays. Raises ApiError."""
    row = find_file(find_to_write(user, store_id), file_id)
    documents.delete(user, row.pk)


def text_of(user: Any, store_id: str, file_id: str) -> str | None:
    """What was read of the file; None before it has been read. Raises ApiError."""
    row = find_file(find(user, store_id), file_id)
    version = documents.version_for(row)
    return version.text if row.live_version is not None or version.text else None


# --- lists ------------------------------------------------------------------------------------------


def page(
    collection: Collection, status: str | None, cursor: Cursor, batch: FileBatch | None = None
) -> list[Document]:
    """Up to as many as the cursor wants, and one more where there are more. Raises ApiError."""
    rows = Document.objects.filter(collection=collection)
    if batch is not None:
        rows = rows.filter(batch=batch)
    if status is not None:
        newest = Version.objects.filter(document=OuterRef("pk")).order_by("-number")
        rows = rows.annotate(
            newest_state=Subquery(newest.values("state")[:1]),
            newest_reason=Subquery(newest.values("reason")[:1]),
        ).filter(_STATES[status])
    after, before = (_document_id(collection, id_) for id_ in (cursor.after, cursor.before))
    return cursor.page(documents.with_newest(rows), after, before)


def _document_id(collection: Collection, file_id: str) -> UUID | None:
    """None for no id, and for one that never was in the store: the cursor tells which. Who empties a
    store page by page goes on behind what they have just deleted."""
    row_id = files.row_id_of(file_id, files.PREFIX)
    if row_id is None:
        return None
    rows = Document.objects.filter(_is_called(row_id), collection=collection)
    found = rows.values_list("pk", flat=True).first()
    return found or documents.place_of_deleted(collection.pk, row_id)


# --- batches ----------------------------------------------------------------------------------------


def create_batch(
    user: Any, store_id: str, wanted: Sequence[VectorStoreFileIn], param: str
) -> tuple[FileBatch, list[UUID]]:
    """And the versions that are to be read now. Raises ApiError, RetrievalError."""
    collection = find_to_write(user, store_id)
    batch = FileBatch(collection=collection)
    return batch, attach(user, collection, wanted, param, batch)


def find_batch(collection: Collection, id_: str) -> FileBatch:
    """Raises ApiError: 404."""
    row_id = files.row_id_of(id_, BATCH_PREFIX)
    rows = FileBatch.objects.filter(collection=collection)
    row = rows.filter(pk=row_id).first() if row_id else None
    if row is None:
        message = f"There is no batch with the id '{id_}' in this vector store."
        raise ApiError(404, "not_found", message, "batch_id")
    return row


def cancel_batch(user: Any, store_id: str, id_: str) -> FileBatch:
    """What has not been read yet is not read any more. Whoever reads one of them finds that they have
    lost it. Raises ApiError."""
    batch = find_batch(find_to_write(user, store_id), id_)
    with transaction.atomic():
        unfinished = Version.objects.filter(document__batch=batch, state__in=UNFINISHED)
        now = timezone.now() - timedelta(seconds=1)
        num = unfinished.update(
            state=VersionState.FAILED,
            reason=CANCELLED,
            staged=[],
            lease_owner="",
            lease_until=now,
        )
        if num:
            batch.is_cancelled = True
            batch.save(update_fields=["is_cancelled"])
    return batch


# --- as OpenAI shows them ---------------------------------------------------------------------------


def file_value(row: Document) -> Value:
    """`row` as retrieval.documents.with_newest gives it."""
    newest: Version = row.newest[0]  # type: ignore[attr-defined]
    status = status_of(newest.state, newest.reason == CANCELLED)
    error = {"code": "invalid_file", "message": newest.reason} if status == "failed" else None
    return {
        "id": public_file_id(row),
        "object": "vector_store.file",
        "usage_bytes": newest.size_bytes if status == "completed" else 0,
        "created_at": int(row.created_at.timestamp()),
        "vector_store_id": public_id(row.collection_id),
        "status": status,
        "last_error": error,
        "chunking_strategy": _chunking_value(row),
        "attributes": row.attributes,
    }


def _chunking_value(row: Document) -> Value:
    if row.chunk_tokens is None or row.chunk_overlap_tokens is None:
        return {"type": "other"}
    return {
        "type": "static",
        "static": {
            "max_chunk_size_tokens": row.chunk_tokens,
            "chunk_overlap_tokens": row.chunk_overlap_tokens,
        },
    }


def batch_value(row: FileBatch) -> Value:
    counts: Counts = counts_of([row.collection_id], row.pk)[row.collection_id]
    status = "in_progress" if counts.in_progress else "completed"
    return {
        "id": f"{BATCH_PREFIX}{row.pk.hex}",
        "object": "vector_store.files_batch",
        "created_at": int(row.created_at.timestamp()),
        "vector_store_id": public_id(row.collection_id),
        "status": "cancelled" if row.is_cancelled else status,
        "file_counts": counts.value(),
    }
