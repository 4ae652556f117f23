"""`manage.py restore FILE` makes a site of a backup, in a DATA_DIR without one."""

import os
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

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        if env_str("DATABASE_URL"):
            raise CommandError(
                "A backup is restored into the embedded database: unset DATABASE_URL, or see"
                " docs/operations.md."
            )
        lock = try_lock(settings.DATA_DIR, "manage.py restore")
        if isinstance(lock, str):
            raise CommandError(f"Vitrine runs on this DATA_DIR ({settings.DATA_DIR}), at {lock}.")
        try:
            backup.restore(file, settings.DATA_DIR)
        except backup.BackupFailed as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror}.") from None
        finally:
            os.close(lock)
        self.stdout.write("Restored. Start Vitrine, and pull again what models you had pulled.")
