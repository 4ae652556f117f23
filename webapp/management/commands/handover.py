"""`manage.py handover FROM TO` gives what somebody has shared to somebody else."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.handover import CannotTake, hand_over
from webapp.models import User


class Command(BaseCommand):
    help = (
        "Give the collections that others may read, and the assistants that all see, to somebody else,"
        " with all rights as they are. Chats stay with their owner."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("giver", metavar="FROM", help="an e-mail address")
        parser.add_argument("taker", metavar="TO", help="an e-mail address")

    def handle(self, *args: Any, giver: str, taker: str, **options: Any) -> None:
        try:
            handed = hand_over(_person(giver), _person(taker))
        except CannotTake as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Handed over: {handed}.")
        if handed.problems:
            raise CommandError("\n".join(["Not handed over:", *handed.problems]))


def _person(email: str) -> User:
    user = User.objects.filter(email__iexact=email).first()
    if user is None:
        raise CommandError(f"There is no user with the address {email}.")
    return user
