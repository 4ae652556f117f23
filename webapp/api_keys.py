"""Making and finding API keys."""

import re
import secrets
from collections.abc import Iterable, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from moderation.policy_store import rename_in_policies
from webapp.models import LAST_USED_PRECISION, ApiKey, User, granted_models
from webapp.scopes import SCOPES, USUAL
from webapp.security_events import Kind, note_event

MAX_PATTERNS = 50
MAX_PATTERN_CHARS = 200
LONGEST_LIFE = timedelta(days=3653)  # ten years

_FORM = re.compile(r"vt_[A-Za-z0-9_-]{43}")
_PREFIX_CHARS = 11  # "vt_" and 8 of the secret's 43 characters: 48 of its 256 bits


class UnknownScope(ValueError):
    pass


def key_end(end: datetime) -> datetime:
    """When a key ends, as it is kept; without a time zone it is meant as UTC. Raises ValueError for the
    past and for more than ten years ahead."""
    now = timezone.now()
    if end.tzinfo is None:
        end = end.replace(tzinfo=UTC)
    # Compared, and only then converted: the first and the last day of the calendar have no UTC.
    if not now < end <= now + LONGEST_LIFE:
        raise ValueError("A key ends in the future, and within ten years.")
    return end.astimezone(UTC)


def create_api_key(
    user: User,
    *,
    name: str = "",
    scopes: Sequence[str] = USUAL,
    expires_at: datetime | None = None,
    **limits: Any,
) -> tuple[ApiKey, str]:
    """The row and the secret, which is shown once and kept nowhere.

    `limits` are `model_names`, `requests_per_minute` and `tokens_per_day` of the key. Raises
    UnknownScope.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise UnknownScope(f"Scopes are {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}.")
    secret = _new_secret()
    key = ApiKey.objects.create(
        user=user,
        name=name,
        scopes=list(scopes),
        expires_at=expires_at,
        prefix=secret[:_PREFIX_CHARS],
        secret_hash=_hash(secret),
        **limits,
    )
    _note(key, "made")
    return key, secret


def rotate_api_key(key: ApiKey) -> str:
    """Another secret for the same key; the one before opens nothing any more. Policies that are for the
    key stay so."""
    secret = _new_secret()
    before = key.prefix
    key.prefix, key.secret_hash = secret[:_PREFIX_CHARS], _hash(secret)
    with transaction.atomic():
        key.save(update_fields=["prefix", "secret_hash"])
        rename_in_policies(
            "key_prefixes", before, key.prefix, f"The key {before} has another secret."
        )
    _note(key, "made anew")
    return secret


def revoke_api_key(key: ApiKey) -> None:
    """At once and for good; its usage stays in the ledger."""
    key.revoked_at = key.revoked_at or timezone.now()
    key.save(update_fields=["revoked_at"])
    _note(key, "revoked")


def _note(key: ApiKey, what: str) -> None:
    note_event(Kind.API_KEY, account=key.user_id, how=f"{what}: {key.prefix}")


def find_api_key(secret: str) -> ApiKey | None:
    """The usable key with its user, whatever the user's state; one query."""
    return find_api_keys([secret])[0]


def is_key_usable(key_id: int) -> bool:
    """Whether it still opens anything, and its user's account too."""
    key = ApiKey.objects.select_related("user").filter(pk=key_id).first()
    return key is not None and key.is_usable(timezone.now()) and key.user.is_active


def find_api_keys(secrets_: Sequence[str]) -> list[ApiKey | None]:
    """Of each secret its usable key, or None; one query for all. No two share an object.

    A secret has 256 random bits, so a plain hash protects it.
    """
    prefixes = {secret[:_PREFIX_CHARS] for secret in secrets_ if _FORM.fullmatch(secret)}
    if not prefixes:
        return [None] * len(secrets_)
    candidates = ApiKey.objects.select_related("user__tier").filter(prefix__in=prefixes)
    found = list(candidates.annotate(granted_models=granted_models("user_id")))
    now = timezone.now()
    return [_own(_match(secret, found, now)) for secret in secrets_]


def _match(secret: str, candidates: Sequence[Any], now: datetime) -> Any:
    own_hash = _hash(secret)
    for key in candidates:
        if secrets.compare_digest(key.secret_hash, own_hash) and key.is_usable(now):
            return key
    return None


def _own(key: Any) -> ApiKey | None:
    """A copy: whoever asks may change what they got."""
    if key is None:
        return None
    mine: ApiKey = _copied(key)
    mine.user = _copied(key.user)
    mine.user.granted_models = key.granted_models
    return mine


def _copied(row: Any) -> Any:
    """As copy() does, but not by the way of pickles, on which sixty requests of a key wait for long."""
    made = row.__class__.__new__(row.__class__)
    vars(made).update(vars(row))
    made._state = copy(row._state)
    made._state.fields_cache = row._state.fields_cache.copy()
    return made


def mark_used(keys: Iterable[ApiKey]) -> None:
    """Note the use, at most once a minute, also when many requests come at once."""
    now = timezone.now()
    stale = now - LAST_USED_PRECISION
    ids = {key.pk for key in keys if not key.last_used_at or key.last_used_at <= stale}
    if ids:
        is_stale = Q(last_used_at=None) | Q(last_used_at__lte=stale)
        ApiKey.objects.filter(is_stale, pk__in=ids).update(last_used_at=now)


def _new_secret() -> str:
    return f"vt_{secrets.token_urlsafe(32)}"


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
