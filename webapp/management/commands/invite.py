"""`manage.py invite [EMAIL] [--tier TIER] [--days 14]` prints the link of a new invitation once."""

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email

from webapp.invitations import LIFETIME, invite
from webapp.models import Tier, User
from webapp.signup import current_policy


class Command(BaseCommand):
    help = (
        "Make an invitation and print its link, which makes one account. It cannot be shown again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", nargs="?", default="", help="the one address that may use it")
        parser.add_argument("--tier", default="free", help="of the account (default: free)")
        parser.add_argument(
            "--days", type=int, default=LIFETIME.days, help="how long it is valid (default: 14)"
        )

    def handle(self, *args: Any, email: str, tier: str, days: int, **options: Any) -> None:
        if not current_policy().takes_invitations:
            raise CommandError("Sign-up is closed: an invitation would open nothing.")
        if not Tier.objects.filter(slug=tier).exists():
            known = ", ".join(Tier.objects.order_by("slug").values_list("slug", flat=True))
            raise CommandError(f"There is no tier {tier}; there are {known}.")
        if days < 1:
            raise CommandError("An invitation is valid for a day at least.")
        if email:
            _check(email)
        _, link = invite(email=email, tier=tier, lifetime=timedelta(days=days))
        self.stdout.write(link)


def _check(email: str) -> None:
    try:
        validate_email(email)
    except ValidationError:
        raise CommandError(f"{email} is no e-mail address.") from None
    if User.objects.filter(email__iexact=email).exists():
        raise CommandError(f"{email} has an account already.")
