"""`manage.py models`: which models there are, and whether they can be served."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from inference.catalog import discover
from inference.cli.models import describe


class Command(BaseCommand):
    help = "List the models of this installation."

    def handle(self, *args: Any, **options: Any) -> None:
        for spec in discover(settings.ENGINE).values():
            if not spec.is_internal:
                self.stdout.write(describe(spec))
