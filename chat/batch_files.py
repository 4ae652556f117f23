"""The files that a batch leaves: its results, and its errors. Synchronous."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, BinaryIO
from uuid import UUID

from django.utils import timezone

from chat import batch_calls, batch_lines, file_store, files
from chat.ids import uuid7
from chat.models import ApiFile, Batch, BatchResult

PURPOSE = "batch_output"


class _Writer:
    """A file that is made with its first line."""

    def __init__(self, stack: ExitStack) -> None:
        self.id = uuid7()
        self.size_bytes = 0
        self._stack = stack
        self._file: BinaryIO | None = None

    def write(self, text: str) -> None:
        if self._file is None:
            self._file = self._stack.enter_context(file_store.path_of(self.id).open("xb"))
        self.size_bytes += self._file.write(text.encode() + b"\n")

    def end(self) -> None:
        if self._file is not None:
            file_store.make_safe(self._file)


def write(
    batch: Batch, unanswered: tuple[str, str] | None
) -> tuple[ApiFile | None, ApiFile | None]:
    """Write the results of lines that were answered well, and those of all others; each where there are
    any. The rows are not saved yet. `unanswered` is the code and the message that lines get which have
    no result; None where every line has one.

    On the way out with an error nothing is left: where the disk is full, half a file would keep it so.
    """
    with ExitStack() as stack:
        outputs, errors = _Writer(stack), _Writer(stack)
        try:
            _write_all(batch, unanswered, outputs, errors)
        except BaseException:
            for writer in (outputs, errors):
                file_store.remove(writer.id)
            raise
    return _row(batch, outputs, "output"), _row(batch, errors, "error")


def _write_all(
    batch: Batch, unanswered: tuple[str, str] | None, outputs: _Writer, errors: _Writer
) -> None:
    done = set()
    rows = BatchResult.objects.filter(batch=batch.pk).order_by("number")
    for row in rows.iterator(chunk_size=100):
        (errors if row.is_error else outputs).write(row.text)
        done.add(row.number)
    if unanswered is not None:
        for text in _unanswered(batch, done, *unanswered):
            errors.write(text)
    outputs.end()
    errors.end()


def _unanswered(batch: Batch, done: set[int], code: str, message: str) -> Iterator[str]:
    """Of a file that is gone, or was never found right, there is nothing to tell."""
    path = file_store.path_of(batch.input_file)
    if batch.num_lines and path.exists():
        for line in batch_lines.read(path, batch.endpoint, done):
            yield batch_calls.unanswered(line, code, message)


def _row(batch: Batch, writer: _Writer, kind: str) -> ApiFile | None:
    if not writer.size_bytes:
        return None
    keep = files.KEEP_BATCHES
    if batch.output_expires_s is not None:
        keep = timedelta(seconds=batch.output_expires_s)
    return ApiFile(
        id=writer.id,
        owner_id=batch.owner_id,
        purpose=PURPOSE,
        name=f"{batch.public_id}_{kind}.jsonl",
        size_bytes=writer.size_bytes,
        expires_at=timezone.now() + keep,
    )


def public_id(file_id: UUID | None) -> Any:
    """None where there is no file."""
    return None if file_id is None else f"{files.PREFIX}{file_id.hex}"
