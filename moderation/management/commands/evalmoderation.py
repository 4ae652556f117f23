"""`manage.py evalmoderation FILE [--benign FILE]` measures how well texts are judged."""

import asyncio
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference import EngineError


class Command(BaseCommand):
    help = (
        "Measure how well the configured classifiers judge. FILE is JSON lines or a CSV with the column"
        " text, and with unsafe (true, false) or categories (a list; in a CSV with spaces between), or"
        " both. What is in --benign is harmless, one text a line where it is no JSON."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--benign", metavar="FILE", type=Path, help="harmless texts")
        parser.add_argument("--json", metavar="FILE", help="also as JSON; - is standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        from moderation import evaluation, judging  # with numpy, for which no other command waits

        if not settings.MODERATION:
            raise CommandError("VITRINE_MODERATION is off: there is no classifier to measure.")
        cases = self._read(evaluation.read_cases_file, options["file"])
        benign = self._read(evaluation.read_benign_file, options["benign"])
        try:
            judged = asyncio.run(judging.judge(cases, benign, settings.ENGINE, settings.MODERATION))
        except EngineError as error:
            raise CommandError(str(error)) from None
        found = judging.figures(judged)
        if options["json"] == "-":
            self.stdout.write(json.dumps(found, indent=2))
            return
        self.stdout.write("\n".join(judging.report(found)))
        if options["json"]:
            Path(options["json"]).write_text(json.dumps(found, indent=2) + "\n")

    def _read(self, read: Any, path: Path | None) -> Any:
        if path is None:
            return []
        try:
            return read(path)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        except ValueError as error:
            raise CommandError(f"{path}: {error}.") from None
