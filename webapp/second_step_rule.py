"""Of whom a second step is asked, and who still owes one: those come to the page where it is added.

It holds for sessions, and for tokens, which live by one. API keys are another proof, and stay.
"""

from collections.abc import Iterable
from time import monotonic

from allauth.mfa.models import Authenticator
from django.conf import settings

from webapp.models import SecondStepRule, User

OPEN_WHILE_OWED = frozenset(
    {
        "mfa_index",
        "mfa_activate_totp",
        "mfa_add_webauthn",
        "mfa_view_recovery_codes",
        "mfa_generate_recovery_codes",
        "mfa_download_recovery_codes",
        "mfa_reauthenticate",
        "mfa_reauthenticate_webauthn",
        "account_reauthenticate",
        "account_logout",
        "language",
        "manifest",
        "service-worker",
        "offline",
        "healthz",
        "readyz",
    }
)
"""Names of the addresses that who owes one may open."""
_ASKED_EVERY_S = 2.0
_STEPS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)

_known: tuple[float, str] | None = None  # until when, and whom; asked at each request of a session


def required_of() -> str:
    """One of SecondStepRule.Whom; what changed in the console counts within two seconds."""
    global _known
    if _known is None or monotonic() >= _known[0]:
        rule = SecondStepRule.objects.first()
        _known = (monotonic() + _ASKED_EVERY_S, settings.SECOND_STEP if rule is None else rule.whom)
    return _known[1]


def forget_rule() -> None:
    """Ask anew: this process has just changed it."""
    global _known
    _known = None


def may_owe_one(user: User) -> bool:
    """By what is known without a query."""
    return _known is None or monotonic() >= _known[0] or _is_asked(user, _known[1])


def who_owe_one(users: Iterable[User]) -> set[int]:
    """Their ids. One query, and none where none is asked."""
    whom = required_of()
    asked = {user.pk for user in users if _is_asked(user, whom)}
    if not asked:
        return set()
    have = Authenticator.objects.filter(user__in=asked, type__in=_STEPS)
    return asked - set(have.values_list("user_id", flat=True))


def _is_asked(user: User, whom: str) -> bool:
    is_meant = whom == SecondStepRule.Whom.EVERYBODY or (
        whom == SecondStepRule.Whom.STAFF and user.is_staff
    )
    return is_meant and user.has_usable_password()
