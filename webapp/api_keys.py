"""Making and finding API keys."""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from django.db.models import Q
from django.utils import timezone

from webapp.models import LAST_USED_PRECISION, ApiKey, User

SCOPES = {"v1": "/v1/", "api": "/api/"}
"""Scope -> the paths that it opens."""

_FORM = re.compile(r"vt_[A-Za-z0-9_-]{43}")
_PREFIX_CHARS = 11  # "vt_" and 8 of the secret's 43 characters: 48 of its 256 bits


class UnknownScope(ValueError):
    pass


def create_api_key(
    user: User,
    *,
    name: str = "",
    scopes: Sequence[str] = tuple(SCOPES),
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """The row and the secret, which is shown once and kept nowhere.

    Raises UnknownScope.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise UnknownScope(f"Scopes are {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}.")
    secret = f"vt_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        user=user,
        name=name,
        scopes=list(scopes),
        expires_at=expires_at,
        prefix=secret[:_PREFIX_CHARS],
        secret_hash=_hash(secret),
    )
    return key, secret


def find_api_key(secret: str) -> ApiKey | None:
    """The usable key with its user, whatever the user's state; one query.

    The secret has 256 random bits, so a plain hash protects it.
    """
    if not _FORM.fullmatch(secret):
        return None
    candidates = ApiKey.objects.select_related("user__tier").filter(prefix=secret[:_PREFIX_CHARS])
    now = timezone.now()
    for key in candidates:
        if secrets.compare_digest(key.secret_hash, _hash(secret)) and key.is_usable(now):
            return key
    return None


def mark_used(key: ApiKey) -> None:
    """Note the use, at most once a minute, also when many requests come at once."""
    now = timezone.now()
    if key.last_used_at and key.last_used_at > now - LAST_USED_PRECISION:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_PRECISION)
    ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
