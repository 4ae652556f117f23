"""`manage.py exportlabels FILE` writes texts that reviewers have labelled, for `evalmoderation`."""

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from moderation.reviewing import labelled
from webapp.tenancy import as_system


class Command(BaseCommand):
    help = (
        "Write the texts of decisions that reviewers have labelled, as JSON lines with text and"
        " categories: what evalmoderation reads. They are people's texts: keep the file to yourself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="- is standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"] == "-":
            self._write(sys.stdout)
            return
        path = Path(options["file"])
        try:
            with open(path, "w", encoding="utf-8", opener=_only_ours) as file:
                num = self._write(file)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        self.stdout.write(f"{num} texts.")

    def _write(self, file: TextIO) -> int:
        with as_system():  # what reviewers have looked at is everybody's
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in labelled()]
        file.writelines(lines)
        return len(lines)


def _only_ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
