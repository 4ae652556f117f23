"""`manage.py restore FILE` makes a site of a backup, in a DATA_DIR without one; with `--verify` it only
looks whether it could."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp import backup
from webapp.env import env_str
from webapp.serving.lock import try_lock


class Command(BaseCommand):
    help = "Make a site of a backup, in a DATA_DIR that holds none; then start Vitrine."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument(
            "--verify",
            action="store_true",
            help="write nothing: read the backup, and compare its files with its list of them",
        )

    def handle(self, *args: Any, file: Path, verify: bool, **options: Any) -> None:
        if verify:
            with _failures_told(file):
                was_compared = backup.verify(file)
            self.stdout.write("The backup is whole.")
            self._tell_of_comparison(was_compared)
            return
        if env_str("DATABASE_URL"):
            raise CommandError(
                "A backup is restored into the embedded database: unset DATABASE_URL, or see"
                " docs/operations.md."
            )
        lock = try_lock(settings.DATA_DIR, "manage.py restore")
        if isinstance(lock, str):
            raise CommandError(f"Vitrine runs on this DATA_DIR ({settings.DATA_DIR}), at {lock}.")
        try:
            with _failures_told(file):
                was_compared = backup.restore(file, settings.DATA_DIR)
        finally:
            os.close(lock)
        self.stdout.write("Restored. Start Vitrine, and pull again what models you had pulled.")
        self._tell_of_comparison(was_compared)

    def _tell_of_comparison(self, was_compared: bool) -> None:
        if not was_compared:
            self.stderr.write(
                "It was made by an older version and has no list of its files: whether one of them is"
                " missing, or was altered, was not checked."
            )


@contextmanager
def _failures_told(file: Path) -> Iterator[None]:
    try:
        yield
    except backup.BackupFailed as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or file}: {error.strerror}.") from None
