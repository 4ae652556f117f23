"""`manage.py models`: which models there are, and whether they can be served."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from inference.cli.models import list_models


class Command(BaseCommand):
    help = "List the models of this installation."

    def handle(self, *args: Any, **options: Any) -> None:
        for line in list_models(settings.ENGINE):
            self.stdout.write(line)
