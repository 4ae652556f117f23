"""`manage.py pull ORG/MODEL`: bring a model from the hub to this machine, or take it away again."""

import os
import sys
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference import ModelError, hub
from inference.hub_talk import token_of
from inference.kinds import kind_at
from inference.placement import computes_on_gpu


class Command(BaseCommand):
    help = "Download a model from the hub. An interrupted download goes on where it was."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model", help="ORG/MODEL, as on the hub's page")
        parser.add_argument(
            "--remove", action="store_true", help="delete the model from this machine"
        )

    def handle(self, *args: Any, model: str, remove: bool, **options: Any) -> None:
        try:
            if remove:
                self._remove(model)
            else:
                self._pull(model)
        except ModelError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError("Stopped. The same command goes on from here.") from None

    def _remove(self, model: str) -> None:
        if not hub.remove(model, settings.ENGINE.models_dir):
            raise CommandError(f"{model} is not among the pulled models.")
        self.stdout.write(f"{model} is deleted.")

    def _pull(self, model: str) -> None:
        token = token_of(os.environ.get("HF_TOKEN", ""))
        engine = settings.ENGINE
        models_dir = engine.models_dir
        plan = hub.plan_pull(
            model,
            models_dir,
            token,
            memory_bytes=engine.memory_bytes,
            dtype=engine.dtype,
            on_gpu=computes_on_gpu(engine),
        )
        if plan.warning:
            self.stderr.write(f"It may not be served here: {plan.warning}")
        self.stdout.write(f"{model}: {plan.size_bytes / 2**30:.2f} GiB to {models_dir / model}")
        path = hub.pull(plan, models_dir, token, _Line())
        use = "choose it at the top of a chat" if kind_at(path) == "chat" else "use it by its name"
        self.stdout.write(f"\n{model} is in {path}; {use}.")


class _Line:
    """Progress: one line that is rewritten on a terminal, one line a minute elsewhere."""

    def __init__(self) -> None:
        self._written_s = 0.0
        self._every_s = 0.2 if sys.stdout.isatty() else 60.0

    def __call__(self, done_bytes: int, total_bytes: int) -> None:
        if monotonic() - self._written_s < self._every_s and done_bytes < total_bytes:
            return
        self._written_s = monotonic()
        percent = 100 * done_bytes / max(1, total_bytes)
        text = f"{done_bytes / 2**30:.2f} of {total_bytes / 2**30:.2f} GiB, {percent:.0f} %"
        sys.stdout.write(f"\r{text}" if sys.stdout.isatty() else f"{text}\n")
        sys.stdout.flush()
