"""Everything that only an old SECRET_KEY opens, sealed anew with the present one.

Row by row under its lock, so that what the site writes meanwhile is not lost, in transactions of BATCH
rows. A row that somebody else has locked is left for the next round: who waits for nobody cannot be one
of two that wait for each other. Killed at any moment, it has sealed some rows and not the others, all of
which open as long as the old key is a fallback.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.core import signing
from django.db import models, transaction
from django.db.models import QuerySet
from django.utils import timezone

from chat.models import Share
from chat.sealing import Unreadable, sealed_anew, secret_keys
from chat.sharing import resealed
from webapp.models import User
from webapp.principal import session_store

BATCH = 200
_ROUNDS = 5
_PAUSE_S = 0.2
_SEALED_FIELDS = {
    Authenticator.Type.TOTP: ("secret",),
    Authenticator.Type.RECOVERY_CODES: ("seed", "migrated_codes"),
}

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of one table with something sealed. `anew` says what is to be written into each: nothing
    where the present key opens it. `written` hears of rows that are committed."""

    title: str
    model: type[models.Model]
    rows: Callable[[], QuerySet[Any]]
    anew: Callable[[Sequence[Any]], list[Values | Unreadable]]
    written: Callable[[Sequence[Any]], None] = lambda rows: None
    may_be_named: bool = True


@dataclass
class Count:
    """Rows of one kind: those that the present key opens, those of them that needed an old one until
    now, those that need it, and those that no known key opens. `unopened` are ids of the last."""

    num_present: int = 0
    num_sealed: int = 0
    num_old: int = 0
    num_unopened: int = 0
    unopened: list[str] = field(default_factory=list)


def count(kind: Kind) -> Count:
    """Changes nothing. In the system's scope."""
    found = Count()
    for rows in _batches(kind.rows()):
        for row, values in zip(rows, kind.anew(rows), strict=True):
            if isinstance(values, Unreadable):
                found.num_unopened += 1
                found.unopened += [str(row.pk)] if kind.may_be_named else []
            elif values:
                found.num_old += 1
            else:
                found.num_present += 1
    return found


def reseal(kind: Kind) -> Count:
    """What is left in `num_old` somebody else holds, or a process that has the old key alone goes on
    sealing. In the system's scope."""
    num_sealed = 0
    for number in range(_ROUNDS):
        if number:
            sleep(_PAUSE_S)
        num_sealed += _round(kind)
        found = count(kind)
        if not found.num_old:
            break
    found.num_sealed = num_sealed
    return found


def _round(kind: Kind) -> int:
    """How many were sealed."""
    num_sealed, last = 0, None
    while True:
        with transaction.atomic():
            rows = _after(kind.rows(), last).select_for_update(skip_locked=True, no_key=True)
            found = list(rows[:BATCH])
            changed = []
            for row, values in zip(found, kind.anew(found), strict=True):
                if values and not isinstance(values, Unreadable):
                    kind.model._base_manager.filter(pk=row.pk).update(**values)
                    changed.append(row)
        if changed:
            kind.written(changed)
        num_sealed += len(changed)
        if len(found) < BATCH:
            return num_sealed
        last = found[-1].pk


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    last = None
    while found := list(_after(rows, last)[:BATCH]):
        yield found
        last = found[-1].pk


def _after(rows: QuerySet[Any], last: Any) -> QuerySet[Any]:
    return (rows if last is None else rows.filter(pk__gt=last)).order_by("pk")


def _or_unreadable(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except Unreadable as error:
        return error


# --- second steps -------------------------------------------------------------------------------


def _second_steps() -> QuerySet[Authenticator]:
    found: QuerySet[Authenticator] = Authenticator.objects.filter(type__in=_SEALED_FIELDS)
    return found


def _second_steps_anew(rows: Sequence[Authenticator]) -> list[Values | Unreadable]:
    return [_or_unreadable(_second_step, row) for row in rows]


def _second_step(row: Authenticator) -> Values:
    names = _SEALED_FIELDS[Authenticator.Type(row.type)]
    if not isinstance(row.data, dict) or row.data.keys().isdisjoint(names):
        raise Unreadable
    data = {name: _anew(value) if name in names else value for name, value in row.data.items()}
    return {"data": data} if data != row.data else {}


def _anew(value: Any) -> Any:
    """Of a sealed text, or a list of them. Raises Unreadable."""
    if isinstance(value, list):
        return [_anew(one) for one in value]
    if not isinstance(value, str):
        raise Unreadable
    return sealed_anew(value)


# --- share links --------------------------------------------------------------------------------


def _share_links_anew(rows: Sequence[Share]) -> list[Values | Unreadable]:
    return [_or_unreadable(_share_link, row) for row in rows]


def _share_link(row: Share) -> Values:
    sealed = resealed(row)
    return {"sealed_token": sealed} if sealed != row.sealed_token else {}


# --- sessions -----------------------------------------------------------------------------------


def _sessions() -> QuerySet[Session]:
    return Session.objects.filter(expire_date__gt=timezone.now())


def _sessions_anew(rows: Sequence[Session]) -> list[Values | Unreadable]:
    """They are signed, and a digest in them is how a new password ends them."""
    opened = [_or_unreadable(_opened, row.session_data) for row in rows]
    ids = {str(one.get(SESSION_KEY)) for one in opened if not isinstance(one, Unreadable)}
    users = User._base_manager.in_bulk(list(filter(str.isdecimal, ids)))
    return [
        data if isinstance(data, Unreadable) else _session(row, data, users)
        for row, data in zip(rows, opened, strict=True)
    ]


def _session(row: Session, data: dict[str, Any], users: Mapping[int, User]) -> Values:
    user_id = str(data.get(SESSION_KEY))
    user = users.get(int(user_id)) if user_id.isdecimal() else None
    if user and data.get(HASH_SESSION_KEY) in list(user.get_session_auth_fallback_hash()):
        data = {**data, HASH_SESSION_KEY: user.get_session_auth_hash()}
    elif _is_signed_with(secret_keys()[0], row.session_data):
        return {}
    return {"session_data": session_store().encode(data)}


def _opened(session_data: str) -> dict[str, Any]:
    """Raises Unreadable."""
    if not any(_is_signed_with(key, session_data) for key in secret_keys()):
        raise Unreadable
    data: dict[str, Any] = session_store().decode(session_data)
    return data


def _is_signed_with(key: str, session_data: str) -> bool:
    salt = session_store().key_salt
    try:
        signing.TimestampSigner(key=key, salt=salt, fallback_keys=[]).unsign(session_data)
    except signing.BadSignature:
        return False
    return True


def _forget_copies(rows: Sequence[Session]) -> None:
    """In the cache, with the digest of before."""
    type(session_store()).forget_copies([row.session_key for row in rows])


KINDS = (
    Kind("second steps", Authenticator, _second_steps, _second_steps_anew),
    Kind("share links", Share, Share.objects.all, _share_links_anew),
    # Whoever has the id of a session is signed in, so none is named.
    Kind("sessions", Session, _sessions, _sessions_anew, _forget_copies, may_be_named=False),
)
