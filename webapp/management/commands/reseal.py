"""`manage.py reseal [--check | --forget]` seals everything anew with the present SECRET_KEY."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chat.sealing import key_marks, secret_keys
from webapp.env import env_secret, env_secrets
from webapp.resealing import KINDS, Count, count, reseal
from webapp.secret_key import forget_keys
from webapp.serving.lock import key_marks_of_serve
from webapp.tenancy import as_system
from webapp.tokens import REFRESH_S

_MIN_CHARS = 32
_MIN_LETTERS = 8
_UNOPENED = 2  # the exit code, where nothing else is wrong


class Command(BaseCommand):
    help = (
        "Seal everything anew with the present SECRET_KEY that one of SECRET_KEY_FALLBACKS opens, or one"
        " of before `newkey`. It may be interrupted, and said again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument(
            "--check",
            action="store_true",
            help="change nothing: exit code 1 where an old key is needed, 2 where there is something"
            " that no known key opens",
        )
        ways.add_argument(
            "--forget",
            action="store_true",
            help="drop the old keys that Vitrine keeps itself, where nothing needs them",
        )

    def handle(self, *args: Any, check: bool, forget: bool, **options: Any) -> None:
        if settings.SECRET_KEY in settings.SECRET_KEY_FALLBACKS:
            self.stderr.write("SECRET_KEY is among SECRET_KEY_FALLBACKS: it is no new key.")
        changes = not (check or forget)
        if changes:
            _refuse_weak()
            self._refuse_beside_other_keys()
        with as_system():  # everybody's
            counts = [(kind, reseal(kind) if changes else count(kind)) for kind in KINDS]
        for kind, one in counts:
            self._tell(kind.title, one, sealed=changes)
        for kind, one in counts:
            for id_ in one.unopened:
                self.stderr.write(f"No known key opens {kind.model._meta.db_table} {id_}.")
        if num_old := sum(one.num_old for _, one in counts):
            raise CommandError(_still_needed(num_old, changes))
        self.stdout.write("No row needs an old key.")
        if forget:
            self._forget()
        elif len(secret_keys()) > 1:
            days = REFRESH_S // 86_400
            self.stdout.write(
                f"What old keys have signed and sent out (letters, tokens) ends within {days} days."
                f" After that, or at once: {_how_to_forget()}."
            )
        if any(one.unopened for _, one in counts):
            raise CommandError(
                "What no known key opens was left as it is: see docs/operations.md.",
                returncode=_UNOPENED,
            )

    def _tell(self, title: str, one: Count, *, sealed: bool) -> None:
        num_all = one.num_present + one.num_old + one.num_unopened
        parts = [f"{one.num_sealed:,} sealed anew"] if sealed else []
        parts += [f"{one.num_old:,} need an old key"] if one.num_old or not sealed else []
        parts += [f"{one.num_unopened:,} opened by no known key"] if one.num_unopened else []
        self.stdout.write(f"{num_all:,} {title}: {', '.join(parts)}.")

    def _refuse_beside_other_keys(self) -> None:
        """A serve that does not know the present key could not open what is sealed with it."""
        served = key_marks_of_serve(settings.DATA_DIR)
        if served and key_marks()[0] not in served:
            raise CommandError(
                "Vitrine runs here with other secret keys and could not open what is sealed anew:"
                " start it anew first."
            )

    def _forget(self) -> None:
        """Only keys that this process has tried: another may have been made meanwhile."""
        served = key_marks_of_serve(settings.DATA_DIR)
        if served and served[0] != key_marks()[0]:
            raise CommandError(
                "Vitrine runs here with an old key and goes on sealing with it: start it anew first."
            )
        if _has_own_key():
            raise CommandError(f"These old keys are yours: {_how_to_forget()}.")
        try:
            num_gone = forget_keys(settings.DATA_DIR, secret_keys()[1:])
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from None
        self.stdout.write(f"{num_gone} old keys are forgotten; start Vitrine anew.")
        if env_secrets("SECRET_KEY_FALLBACKS"):
            self.stdout.write("Take those of SECRET_KEY_FALLBACKS out as well.")


def _refuse_weak() -> None:
    key = settings.SECRET_KEY
    if len(key) < _MIN_CHARS or len(set(key)) < _MIN_LETTERS:
        raise CommandError(
            f"SECRET_KEY is too weak to seal with: {_MIN_CHARS} random characters, at least. Who has a"
            " copy of the database could guess it."
        )


def _still_needed(num_old: int, changes: bool) -> str:
    if not changes:
        return f"{num_old:,} need an old key: `manage.py reseal` seals them anew."
    return (
        f"{num_old:,} still need an old key. Somebody else was writing them, or something that runs has"
        " the old key alone: start that anew, and say it again."
    )


def _how_to_forget() -> str:
    if _has_own_key():
        return "take them out of SECRET_KEY_FALLBACKS, and start Vitrine anew"
    return "`manage.py reseal --forget`, and start Vitrine anew"


def _has_own_key() -> bool:
    return env_secret("SECRET_KEY") is not None
