"""Where somebody is signed in: each browser, and each program that has tokens, with its address and
when it was last seen.

allauth.usersessions is not used: its middleware is synchronous and writes at every request, and what
it lists it asks of each session anew in its own way; here principal.py is asked, as everywhere.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from webapp.connections import releasing
from webapp.models import LAST_USED_PRECISION, SignIn, User
from webapp.principal import session_store, user_of_session
from webapp.tenancy import as_user
from webapp.user_agents import browser_of, system_of

MAX_LISTED = 50
_MAX_REMEMBERED = 10_000


class _LatelyNoted:
    """Session keys that this process has noted within the last minute, so that most requests ask
    neither Redis nor the database."""

    def __init__(self) -> None:
        self._noted_s: OrderedDict[str, float] = OrderedDict()

    def is_new(self, key: str) -> bool:
        """Whether it is to be noted; it then counts as noted. Called on the event loop alone."""
        now_s = time.monotonic()
        if now_s - self._noted_s.get(key, -1e9) < LAST_USED_PRECISION.total_seconds():
            return False
        self._noted_s[key] = now_s
        self._noted_s.move_to_end(key)
        if len(self._noted_s) > _MAX_REMEMBERED:
            self._noted_s.popitem(last=False)
        return True


lately_noted = _LatelyNoted()


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of the list."""

    id: int
    browser: str
    system: str
    address: str
    last_seen_at: datetime
    is_this_one: bool
    has_tokens: bool

    @property
    def was_here_just_now(self) -> bool:
        return timezone.now() - self.last_seen_at < LAST_USED_PRECISION


@releasing
def note(user: User, session_key: str, address: str, user_agent: str) -> None:
    """This session is in use, from there. In the scope of its user."""
    seen = seen_now(address, user_agent)
    row, is_new = SignIn.objects.get_or_create(
        session_key=session_key, defaults={"user": user, **seen}
    )
    if not is_new:
        before = seen["last_seen_at"] - LAST_USED_PRECISION
        SignIn.objects.filter(pk=row.pk, last_seen_at__lte=before).update(**seen)


def seen_now(address: str, user_agent: str) -> dict[str, Any]:
    """What a row says of where it was last seen."""
    return {
        "address": _valid(address),
        "user_agent": user_agent.replace("\x00", "")[:300],
        "last_seen_at": timezone.now(),
    }


def note_login(sender: Any, request: HttpRequest | None, user: User, **kwargs: Any) -> None:
    """Whoever signs in is seen at once, or a session that rests could not be ended."""
    if request is None or "REMOTE_ADDR" not in request.META:
        return  # a program signs somebody in
    if request.session.session_key is None:
        request.session.save()
    meta, key = request.META, str(request.session.session_key)
    with as_user(user.pk):
        note(user, key, meta["REMOTE_ADDR"], meta.get("HTTP_USER_AGENT", ""))


def sign_ins_of(user: User, current_key: str | None) -> list[Shown]:
    """The living ones: this browser first, then the last seen. Forgets the dead."""
    rows = SignIn.objects.filter(user=user).order_by("-last_seen_at")[:MAX_LISTED]
    living: list[SignIn] = []
    dead: list[SignIn] = []
    for row in rows:
        is_this_one = row.session_key == current_key
        # The own session is being answered, and looking at it would read it a second time.
        is_alive = is_this_one or user_of_session(session_store(row.session_key)) == user
        (living if is_alive else dead).append(row)
    SignIn.objects.filter(pk__in=[row.pk for row in dead]).delete()
    shown = [_shown(row, current_key) for row in living]
    return sorted(shown, key=lambda one: not one.is_this_one)


def end_sign_in(user: User, sign_in_id: int) -> bool:
    """Whether there was such a one of this user. Its sockets close when they are next asked."""
    return end_sign_ins(SignIn.objects.filter(user=user, pk=sign_in_id)) > 0


def end_other_sign_ins(user: User, current_key: str | None) -> int:
    """How many."""
    return end_sign_ins(SignIn.objects.filter(user=user).exclude(session_key=current_key))


def end_all_sign_ins(user: User) -> None:
    """Of browsers and programs, whoever asks; open chats close when they are next asked, within 15
    seconds. API keys open nothing while their account is suspended."""
    with as_user(user.pk):
        end_other_sign_ins(user, None)


def forget_dead_sign_ins() -> None:
    """Those whose session has expired or was signed out of. In the system's scope."""
    before = timezone.now() - LAST_USED_PRECISION
    # Not `NOT IN`: once there are too many sessions for its table of them, Postgres would go through all
    # of them for each row.
    living = _living().filter(session_key=OuterRef("session_key"))
    SignIn.objects.filter(~Exists(living), last_seen_at__lt=before).delete()


def living(rows: QuerySet[SignIn]) -> QuerySet[SignIn]:
    """Those whose session has neither expired nor been signed out of."""
    return rows.filter(session_key__in=_living().values("session_key"))


def end_sign_ins(rows: QuerySet[SignIn]) -> int:
    """Their sessions too. How many; in a scope that sees them."""
    keys = list(rows.values_list("session_key", flat=True))
    type(session_store()).delete_together(keys)
    SignIn.objects.filter(session_key__in=keys).delete()
    return len(keys)


def _living() -> QuerySet[Session]:
    return Session.objects.filter(expire_date__gt=timezone.now())


def _shown(row: SignIn, current_key: str | None) -> Shown:
    return Shown(
        id=row.pk,
        browser=browser_of(row.user_agent),
        system=system_of(row.user_agent),
        address=row.address or "",
        last_seen_at=row.last_seen_at,
        is_this_one=row.session_key == current_key,
        has_tokens=row.token_family is not None,
    )


def _valid(address: str) -> str | None:
    try:
        return str(ipaddress.ip_address(address.split("%")[0]))
    except ValueError:
        return None
