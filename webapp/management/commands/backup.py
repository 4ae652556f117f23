"""`manage.py backup FILE` writes all that the site keeps, while it is served or not."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp import backup
from webapp.env import env_str


class Command(BaseCommand):
    help = (
        "Write a backup: the database, documents, files, imports and the secret key, but no models."
        " Whoever has it can read everything: keep it to yourself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        if env_str("DATABASE_URL"):
            raise CommandError(
                "The database of DATABASE_URL is backed up by its own tools: see docs/operations.md."
            )
        if file.exists() and not file.is_file():
            raise CommandError(f"{file} is no file.")
        try:
            size_bytes = backup.write(file, settings.DATA_DIR)
        except backup.BackupFailed as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror}.") from None
        self.stdout.write(f"{size_bytes / 2**20:,.1f} MiB in {file}.")
