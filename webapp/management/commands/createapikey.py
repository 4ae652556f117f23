"""`manage.py createapikey EMAIL [--name NAME] [--scopes chat,embeddings]` prints a new key once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.api_keys import UnknownScope, create_api_key
from webapp.models import User
from webapp.scopes import SCOPES, USUAL


class Command(BaseCommand):
    help = "Make an API key for a user and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="", help="what the key is for")
        parser.add_argument(
            "--scopes",
            default=",".join(USUAL),
            help=f"what it opens, between commas, of: {', '.join(SCOPES)} (default: {', '.join(USUAL)})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = User.objects.get(email__iexact=options["email"])
        except User.DoesNotExist:
            raise CommandError(f"There is no user with the address {options['email']}.") from None
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        try:
            _, secret = create_api_key(user, name=options["name"], scopes=scopes)
        except UnknownScope as error:
            raise CommandError(str(error)) from None
        self.stdout.write(secret)
