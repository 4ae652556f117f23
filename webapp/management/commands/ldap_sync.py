"""`manage.py ldap_sync [--all]` suspends who has left the directory, now."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.tenancy import as_system


class Command(BaseCommand):
    help = (
        "Bring accounts up to date with the directory (VITRINE_LDAP_…), and suspend who has left it."
        " The Celery worker does it every ten minutes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="also where more than half have left, or nobody is in a group any more",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.DIRECTORY is None:
            raise CommandError("There is no directory: VITRINE_LDAP_URL is not set.")
        from webapp.directory import DirectoryUnavailable
        from webapp.directory_sync import TooManyGone, sync

        try:
            with as_system():  # the sign-ins of everybody who has left
                synced = sync(settings.DIRECTORY, may_take_all=options["all"])
        except DirectoryUnavailable as error:
            raise CommandError(
                f"The directory is not available, nothing changed: {error}"
            ) from None
        except TooManyGone as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{synced.num_there} are there, {synced.num_suspended} suspended.")
        if synced.num_failed:
            self.stdout.write(f"{synced.num_failed} could not be brought up to date, see the log.")
