"""`manage.py newkey` makes a new secret key where Vitrine keeps it itself."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from webapp.env import env_secret
from webapp.secret_key import NAME, make_new_key


class Command(BaseCommand):
    help = (
        "Make a new secret key in DATA_DIR. The one of before goes on opening what it has sealed, until"
        " `reseal --forget`."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.DATA_DIR / NAME
        if env_secret("SECRET_KEY"):
            raise CommandError(
                "SECRET_KEY is yours: set another one, and SECRET_KEY_FALLBACKS to the one of before."
                " See docs/operations.md."
            )
        try:
            make_new_key(settings.DATA_DIR)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename or path}: {error.strerror}.") from None
        self.stdout.write(
            f"A new key is in {path}, before the old one. Start Vitrine anew; then say"
            " `manage.py reseal`."
        )
