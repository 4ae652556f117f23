"""Where the files of /v1/files lie: in DATA_DIR/files, each under its id and nothing else.

A file is written before its row and removed after it, so what a crash leaves is a file without a
row. The sweep drops those, and rows whose file somebody has taken away.
"""

import os
from datetime import timedelta
from pathlib import Path
from time import time
from typing import BinaryIO
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from chat.models import ApiFile
from retrieval.strays import are_left_by_crashes, drop_files

GRACE = timedelta(hours=1)
"""Longer than any file is written before its row is there."""


def folder() -> Path:
    path: Path = settings.DATA_DIR / "files"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def path_of(file_id: UUID) -> Path:
    return folder() / file_id.hex


def make_safe(file: BinaryIO) -> None:
    """What is written so far outlives a loss of power."""
    file.flush()
    os.fsync(file.fileno())


def remove(file_id: UUID) -> None:
    path_of(file_id).unlink(missing_ok=True)


def sweep() -> None:
    """Drop files without rows, and rows without files, that are older than the grace. In the system's
    scope, for it asks for everybody's rows."""
    old_s = time() - GRACE.total_seconds()
    lying = {path.name: path for path in folder().iterdir()}
    old = [path for path in lying.values() if path.stat().st_mtime < old_s]
    rows = {id_.hex for id_ in ApiFile.objects.values_list("pk", flat=True)}
    drop_files(old, rows, "files of /v1/files have no row")
    _drop_rows(set(lying))


def _drop_rows(lying: set[str]) -> None:
    old_rows = ApiFile.objects.filter(created_at__lt=timezone.now() - GRACE)
    ids = list(old_rows.values_list("pk", flat=True))
    # Looked up once more: it may have been written while the rows were read.
    strays = [id_ for id_ in ids if id_.hex not in lying and not path_of(id_).exists()]
    if are_left_by_crashes(len(strays), len(ids), "rows of /v1/files have no file"):
        ApiFile.objects.filter(pk__in=strays).delete()
