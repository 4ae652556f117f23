"""The refresh tokens that come of one sign-in: a family, of which one token at a time is valid.

A family is a session, as a browser has one, and its row among the sign-ins. So it is shown and ended
in the settings like every browser, and a new password, a suspension and the end of the account end it,
with nothing here to see to that. The key of the session stays on the server: it would open pages.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.contrib.sessions.backends.base import UpdateError
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.models import SignIn, User
from webapp.principal import session_store, user_of_session
from webapp.sign_ins import end_sign_ins, seen_now
from webapp.tenancy import as_user
from webapp.tokens import REFRESH_S, Claims, InvalidToken, read_token, write_token

LEEWAY_S = 2.0  # after a refresh, in which its token may still come from whoever sent it twice
MAX_FAMILIES = (
    40  # of a user; fewer than the settings list (webapp/sign_ins.py), so that none is hidden
)


class FamilyEnded(Exception):
    """Signed out, a new password, suspended, or never there."""


class Reused(Exception):
    """Somebody else has had this token: its owner, or a thief. The family has ended."""


class Overtaken(Exception):
    """Another request has just used this token, which was valid when this one arrived."""


@dataclass(frozen=True, slots=True)
class Tokens:
    access: str
    refresh: str


def begin_family(user: User, session: Any) -> Tokens:
    """Make a family of the session of a sign-in that is complete. The ones of this user that have
    rested for longest make room."""
    session.set_expiry(REFRESH_S)
    session.save()
    family = uuid4()
    with as_user(user.pk):
        SignIn.objects.filter(session_key=session.session_key).update(token_family=family)
        families = SignIn.objects.filter(user=user).exclude(token_family=None)
        end_sign_ins(families.order_by("-last_seen_at", "-pk")[MAX_FAMILIES:])
    return _tokens(Claims(user.pk, family, 0))


def refresh_family(text: str, *, address: str, user_agent: str, arrived_at: datetime) -> Tokens:
    """The next tokens for a refresh token, which is used up by it.

    Of requests with the same token the one whose UPDATE comes first wins, for the row's lock makes the
    others wait and then find another number. Those that had arrived by then, wherever they waited, are
    no theft: they get nothing (Overtaken), and the winner's tokens stay good. The same holds for
    LEEWAY_S more, in which a client with several windows sends what it has not yet replaced. One that
    arrives later is theft: nobody can tell who the owner is, and all tokens of the family end. A thief
    who is early has nothing either, and is told from the owner by the next refresh of the two.

    Raises InvalidToken, FamilyEnded, Reused, Overtaken.
    """
    claims = read_token(text, "refresh")
    with as_user(claims.user_id):
        row = SignIn.objects.filter(token_family=claims.family).first()
        if row is None:
            raise FamilyEnded
        if row.refresh_number != claims.number:
            if _is_overtaken(row, claims, arrived_at):
                raise Overtaken
            end_sign_ins(SignIn.objects.filter(pk=row.pk))
            raise Reused
        session = session_store(row.session_key)
        if getattr(user_of_session(session), "pk", None) != claims.user_id:
            raise FamilyEnded
        _take_turn(row, session, seen_now(address, user_agent))
    return _tokens(Claims(claims.user_id, claims.family, claims.number + 1))


def _is_overtaken(row: SignIn, claims: Claims, arrived_at: datetime) -> bool:
    if row.refreshed_at is None:
        return False
    is_last = claims.number == row.refresh_number - 1
    leeway = timedelta(seconds=LEEWAY_S if is_last else 0)
    return arrived_at < row.refreshed_at + leeway


def _take_turn(row: SignIn, session: Any, seen: dict[str, Any]) -> None:
    """Raises Overtaken, FamilyEnded. One transaction: whoever begins before the winner is done must not
    see another number yet, and count as a thief."""
    valid = SignIn.objects.filter(pk=row.pk, refresh_number=row.refresh_number)
    with transaction.atomic():
        if not valid.update(refresh_number=F("refresh_number") + 1, **seen):
            raise Overtaken
        try:
            session.save()  # its seven days begin anew
        except UpdateError:  # signed out meanwhile
            raise FamilyEnded from None
        # At the very end: until then nobody can have learned of the next token.
        SignIn.objects.filter(pk=row.pk).update(refreshed_at=timezone.now())


def end_family(text: str) -> None:
    """By any refresh token of it, used up or not. What is no token ends nothing."""
    try:
        claims = read_token(text, "refresh")
    except InvalidToken:
        return
    with as_user(claims.user_id):
        end_sign_ins(SignIn.objects.filter(token_family=claims.family))


def _tokens(claims: Claims) -> Tokens:
    return Tokens(write_token(claims, "access"), write_token(claims, "refresh"))
