"""`manage.py models`: which models there are, and whether they can be served."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from inference import ModelError
from inference.catalog import discover
from inference.defaults import read_context_tokens
from inference.weights import check_servable, read_config, read_weights


class Command(BaseCommand):
    help = "List the models of this installation."

    def handle(self, *args: Any, **options: Any) -> None:
        for spec in discover(settings.ENGINE).values():
            try:
                check_servable(read_config(spec.path))
                weights = read_weights(spec.path)
                context_tokens = read_context_tokens(spec.path)
            except ModelError as error:
                self.stdout.write(f"{spec.name:<40} {error}")
                continue
            self.stdout.write(
                f"{spec.name:<40} {weights.num_parameters / 1e6:>10,.1f} M parameters"
                f" {weights.size_bytes / 2**20:>10,.1f} MiB {context_tokens:>9,} tokens"
            )
