"""`manage.py exportlabels FILE` writes texts that reviewers have labelled, for `evalmoderation`."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

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
        with as_system():  # what reviewers have looked at is everybody's
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in labelled()]
        if options["file"] == "-":
            sys.stdout.writelines(lines)
            return
        path = Path(options["file"])
        if path.exists() and not path.is_file():
            raise CommandError(f"{path} is no file.")
        try:
            _replace(path, lines)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        self.stdout.write(f"{len(lines)} texts.")


def _replace(path: Path, lines: list[str]) -> None:
    """Whole or not at all, so that an earlier file outlives a full disk. For the user alone."""
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
