"""The trail of who came in, who tried to, and what opens an account: a line in the log and a row, kept
for VITRINE_SECURITY_DAYS, which administrators read in the console.

No password is in it, and of what somebody typed for an address a keyed hash alone: it may be anybody's,
or a password in the wrong field. Who types the address again into the console's search finds its rows.

Whoever is not signed in causes rows, so they are bounded: of what fails, and what is refused, an address
(IPv6: a /64) has MAX_ROWS a minute, and all together MAX_ROWS_OF_ALL; of what an account does, the
account has MAX_ROWS. What comes beyond that in a minute is counted in one row; of strangers it is
counted here first, and written by a chore once a second, or a flood of attempts would be one of writes.
"""

import collections
import ipaddress
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from django.conf import settings
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac
from prometheus_client import Counter

from chat.sealing import secret_keys
from webapp.models import SecurityEvent
from webapp.tenancy import as_system

Kind = SecurityEvent.Kind

MAX_ROWS = 10
MAX_ROWS_OF_ALL = 60

logger = logging.getLogger(__name__)

_OUTCOMES = {
    Kind.SIGN_IN: "succeeded",
    Kind.SIGN_IN_FAILED: "failed",
    Kind.REFUSED: "refused",
}
_OF_STRANGERS = (Kind.SIGN_IN_FAILED, Kind.REFUSED)
_sign_ins = Counter(
    "vitrine_sign_ins",
    "Sign-ins, and attempts at doors that take a password or a code.",
    ["outcome"],
)
for _outcome in _OUTCOMES.values():
    _sign_ins.labels(_outcome)  # so that a rate has something to begin with


def note_event(
    kind: Kind,
    *,
    account: int | None = None,
    how: str = "",
    login: str = "",
    request: HttpRequest | None = None,
) -> None:
    """`request` is the one that is being answered, if any. `how` holds nothing that a stranger chose."""
    request = request or context.request
    user = getattr(request, "user", None)
    facts: dict[str, Any] = {
        "kind": kind,
        "account": account,
        "actor": user.pk if user is not None and user.is_authenticated else None,
        "login": hash_of(login) if login else "",
        "address": request.META.get("REMOTE_ADDR") if request is not None else None,
        "how": how[:200],
    }
    if kind in _OUTCOMES:
        _sign_ins.labels(_OUTCOMES[kind]).inc()
    logger.info("security event", extra={name: value for name, value in facts.items() if value})
    network = _network(facts["address"])
    with as_system():  # rows are nobody's own
        _keep(SecurityEvent(**facts | {"address": network and str(network[0])}), network)


def hash_of(login: str) -> str:
    """Of an address or name as somebody typed it."""
    return hashes_of(login)[0]


def hashes_of(login: str) -> list[str]:
    """That, and those of earlier SECRET_KEYs."""
    typed, salt = login.strip().lower(), "webapp.security_events"
    hashes = [salted_hmac(salt, typed, key, algorithm="sha256") for key in secret_keys()]
    return [one.hexdigest()[:16] for one in hashes]


def events_of(account: int) -> list[dict[str, Any]]:
    """What is kept about one account, for its owner."""
    names = ("at", "kind", "address", "how")
    with as_system():  # of this account alone
        return list(SecurityEvent.objects.filter(account=account).order_by("pk").values(*names))


def forget_old_events() -> None:
    """In the system's scope."""
    ended = timezone.now() - timedelta(days=settings.SECURITY_DAYS)
    SecurityEvent.objects.filter(at__lt=ended).delete()


# --- rows -----------------------------------------------------------------------------------------

Network = tuple[Any, Any, Any]
"""An address, and the first and the last one of those that count as one with it."""


_counted: collections.Counter[tuple[str, datetime, str | None]] = collections.Counter()
"""Of a kind, in a minute, from an address or from all: what is in no row yet."""
_lock = Lock()


def _network(address: str | None) -> Network | None:
    try:
        found = ipaddress.ip_address((address or "").split("%")[0])
    except ValueError:
        return None
    if found.version == 4:
        return found, found, found
    whole = ipaddress.ip_network((found, 64), strict=False)
    return found, whole[0], whole[-1]


def _keep(row: SecurityEvent, network: Network | None) -> None:
    minute = _this_minute()
    lately = SecurityEvent.objects.filter(kind=row.kind, minute=None, at__gte=minute)
    if row.kind not in _OF_STRANGERS:
        if lately.filter(account=row.account).count() < MAX_ROWS:
            row.save(force_insert=True)
        else:
            _count_more(row.kind, minute, account=row.account, address=None)
        return
    first = str(network[1]) if network else None
    if _from(lately, network).count() >= MAX_ROWS:
        _count_here(row.kind, minute, first)
    elif lately.count() >= MAX_ROWS_OF_ALL:
        _count_here(row.kind, minute, None)
    else:
        row.save(force_insert=True)


def _this_minute() -> datetime:
    return timezone.now().replace(second=0, microsecond=0)


def _from(rows: QuerySet[SecurityEvent], network: Network | None) -> QuerySet[SecurityEvent]:
    if network is None:
        return rows.filter(address=None)
    return rows.filter(address__gte=str(network[1]), address__lte=str(network[2]))


def _count_here(kind: str, minute: datetime, address: str | None) -> None:
    with _lock:
        _counted[kind, minute, address] += 1


def has_counted() -> bool:
    return bool(_counted)


def write_counted() -> None:
    """What this process has counted of strangers. In the system's scope."""
    with _lock:
        counted = _counted.copy()
        _counted.clear()
    try:
        for kind, minute, address in list(counted):
            number = counted[kind, minute, address]
            _count_more(kind, minute, account=None, address=address, number=number)
            del counted[kind, minute, address]
    finally:
        with _lock:
            _counted.update(counted)  # what could not be written


def _count_more(
    kind: str, minute: datetime, *, account: int | None, address: str | None, number: int = 1
) -> None:
    row, _ = SecurityEvent.objects.get_or_create(
        kind=kind, minute=minute, account=account, address=address
    )
    SecurityEvent.objects.filter(pk=row.pk).update(num_more=F("num_more") + number)


# --- what others tell -----------------------------------------------------------------------------


def connect() -> None:
    """Listen to Django, allauth and the chat."""
    from allauth.account import signals as account
    from allauth.mfa import signals as mfa
    from allauth.socialaccount import signals as social
    from django.contrib.auth.signals import user_logged_in, user_login_failed

    from chat import sharing

    user_logged_in.connect(_signed_in)
    user_login_failed.connect(_sign_in_failed)
    mfa.authentication_failed.connect(_code_failed)
    for signal, kind, how in (
        (account.password_changed, Kind.PASSWORD, "changed"),
        (account.password_set, Kind.PASSWORD, "set"),
        (account.password_reset, Kind.PASSWORD, "reset by a letter"),
        (account.email_added, Kind.ADDRESS, "another one is to be confirmed"),
        (account.email_changed, Kind.ADDRESS, "changed"),
    ):
        _connect(signal, kind, how)
    for signal, how in (
        (mfa.authenticator_added, "added"),
        (mfa.authenticator_removed, "removed"),
        (mfa.authenticator_reset, "made anew"),
    ):
        _connect(signal, Kind.SECOND_STEP, how)
    _connect(social.social_account_added, Kind.CONNECTION, "added")
    _connect(social.social_account_removed, Kind.CONNECTION, "removed")
    sharing.link_made.connect(_link_made)
    sharing.links_revoked.connect(_links_revoked)


def _connect(signal: Any, kind: Kind, how: str) -> None:
    def note(sender: Any, request: HttpRequest | None = None, **facts: Any) -> None:
        thing = facts.get("authenticator")
        login = facts.get("sociallogin")
        user: Any = facts.get("user") or (login and login.user) or (request and request.user)
        text = f"{how}: {thing.type}" if thing is not None else how
        note_event(kind, account=user and user.pk, how=text, request=request)

    signal.connect(note, weak=False)


def _signed_in(sender: Any, request: HttpRequest | None, user: Any, **kwargs: Any) -> None:
    if request is None or "REMOTE_ADDR" not in request.META:
        return  # a program signs somebody in
    how = ", ".join(_means(get_authentication_records(request, user)))
    note_event(Kind.SIGN_IN, account=user.pk, how=how, request=request)


def _means(records: list[dict[str, Any]]) -> Iterable[str]:
    """Each once, in order: `password`, `mfa (totp)`, `socialaccount (google)`."""
    found = {}
    for record in records:
        more = record.get("type") or record.get("provider")
        found[f"{record['method']} ({more})" if more else str(record["method"])] = True
    return found


def _sign_in_failed(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    login = credentials.get("email") or credentials.get("username") or ""
    user = getattr(request, "user", None)
    account = user.pk if user is not None and user.is_authenticated else None
    note_event(
        Kind.SIGN_IN_FAILED, account=account, how="password", login=str(login), request=request
    )


def _code_failed(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    note_event(Kind.SIGN_IN_FAILED, account=user.pk, how="second step", request=request)


def _link_made(sender: Any, owner_id: int, kind: str, **kwargs: Any) -> None:
    note_event(Kind.SHARE, account=owner_id, how=f"made: {kind}")


def _links_revoked(sender: Any, owner_id: int, number: int, **kwargs: Any) -> None:
    note_event(Kind.SHARE, account=owner_id, how=f"revoked: {number}")
