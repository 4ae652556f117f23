"""Where the files of documents lie: in DATA_DIR/documents, each under its version's id and nothing
else. A file is written before its row, and removed after it; what a crash leaves is swept."""

import os
from datetime import timedelta
from pathlib import Path
from time import time
from typing import BinaryIO
from uuid import UUID

from django.conf import settings

from retrieval.models import Version
from retrieval.strays import drop_files

GRACE = timedelta(hours=1)
"""Longer than any file is written before its row is there."""


def folder() -> Path:
    path: Path = settings.DATA_DIR / "documents"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def path_of(version_id: UUID) -> Path:
    return folder() / version_id.hex


def make_safe(file: BinaryIO) -> None:
    """What is written so far outlives a loss of power."""
    file.flush()
    os.fsync(file.fileno())


def remove(version_id: UUID) -> None:
    path_of(version_id).unlink(missing_ok=True)


def sweep() -> None:
    """Drop files without rows that are older than the grace. In the system's scope."""
    old_s = time() - GRACE.total_seconds()
    old = [path for path in folder().iterdir() if path.stat().st_mtime < old_s]
    rows = {id_.hex for id_ in Version.objects.values_list("pk", flat=True)} if old else set()
    drop_files(old, rows, "files of documents have no row")
