"""REST of API keys under /api, for people at a browser: no key makes, changes or lists keys."""

from datetime import datetime
from typing import Annotated, Any

from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from pydantic import AfterValidator

from chat.api_errors import ApiError
from chat.db import in_db
from chat.errors import NotFound
from chat.storable import is_storable
from webapp.api_keys import (
    MAX_PATTERN_CHARS,
    MAX_PATTERNS,
    UnknownScope,
    create_api_key,
    key_end,
    revoke_api_key,
    rotate_api_key,
)
from webapp.key_pages import MAX_KEYS, keys_of, may_have_keys
from webapp.models import ApiKey
from webapp.proofs import proved_lately
from webapp.scopes import USUAL

router = Router()
_MOST = 10**15


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("A text may hold no NUL and no lone surrogates.")
    return text


def _each_once(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


Name = Annotated[str, Field(max_length=120), AfterValidator(_storable)]
Item = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_CHARS), AfterValidator(_storable)]
Items = Annotated[
    list[Item], Field(min_length=1, max_length=MAX_PATTERNS), AfterValidator(_each_once)
]


class KeyChange(Schema):
    """What is left out stays."""

    name: Name | None = None
    model_names: Items | None = None
    requests_per_minute: int | None = Field(None, ge=0, le=1_000_000)
    tokens_per_day: int | None = Field(None, ge=0, le=_MOST)


class NewKey(KeyChange):
    name: Name
    scopes: Items = list(USUAL)
    expires_at: Annotated[datetime, AfterValidator(key_end)] | None = None


@router.get("/keys")
async def list_keys(request: HttpRequest) -> dict[str, Any]:
    """Yours, the newest first, those that have ended too."""
    await _check_person(request)
    return {"items": await in_db(_values)(request.user)}


@router.post("/keys", response={201: dict[str, Any]})
async def create_key(request: HttpRequest, data: NewKey) -> Status[dict[str, Any]]:
    """A new key. Its `secret` is in this answer and nowhere else."""
    await _check_person(request, is_fresh=True)
    return Status(201, await in_db(_create)(request.user, data))


@router.patch("/keys/{key_id}")
async def change_key(request: HttpRequest, key_id: int, data: KeyChange) -> dict[str, Any]:
    """Another name or other limits. Scopes stay: make another key for other doors."""
    await _check_person(request)
    return await in_db(_change)(request.user, key_id, data.model_dump(exclude_unset=True))


@router.post("/keys/{key_id}/rotate")
async def rotate_key(request: HttpRequest, key_id: int) -> dict[str, Any]:
    """Another `secret` for the key; the one before opens nothing from now on."""
    await _check_person(request, is_fresh=True)
    return await in_db(_rotate)(request.user, key_id)


@router.delete("/keys/{key_id}", response={204: None})
async def revoke_key(request: HttpRequest, key_id: int) -> Status[None]:
    """At once and for good."""
    await _check_person(request)
    await in_db(_revoke)(request.user, key_id)
    return Status(204, None)


async def _check_person(request: HttpRequest, *, is_fresh: bool = False) -> None:
    """Raises ApiError. Whoever stole a key, or found a session open, must not get another one of it."""
    if request.auth_method != "session":  # type: ignore[attr-defined]
        raise ApiError(403, "insufficient_scope", "Keys are managed in a browser's session only.")
    if is_fresh and not await in_db(proved_lately)(request):
        text = "Sign out and in again first: this account has no password that could be asked for."
        raise ApiError(403, "reauthentication_required", text)
    if is_fresh and await in_db(is_reauthentication_required)(request, app="account"):
        text = "Confirm your password first: /accounts/reauthenticate/."
        raise ApiError(403, "reauthentication_required", text)


def _values(user: Any) -> list[dict[str, Any]]:
    return [_value(key) for key in keys_of(user)]


def _create(user: Any, data: NewKey) -> dict[str, Any]:
    if not may_have_keys(user):
        raise ApiError(403, "api_keys_not_allowed", "Your plan has no API keys.")
    if keys_of(user).filter(revoked_at=None).count() >= MAX_KEYS:
        raise ApiError(400, "too_many", f"There are {MAX_KEYS} keys already; revoke one first.")
    if "admin:read" in data.scopes and not user.is_staff:
        raise ApiError(403, "not_allowed", "Only an administrator's key has this scope.", "scopes")
    values = {name: value for name, value in data.model_dump().items() if value is not None}
    try:
        key, secret = create_api_key(user, **values)
    except UnknownScope as error:
        raise ApiError(400, "invalid_value", str(error), "scopes") from None
    return _value(key) | {"secret": secret}


def _change(user: Any, key_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    key = _find(user, key_id)
    for name, value in changes.items():
        if value is not None or name in ("requests_per_minute", "tokens_per_day"):
            setattr(key, name, value)
    key.save(update_fields=list(changes))
    return _value(key)


def _rotate(user: Any, key_id: int) -> dict[str, Any]:
    key = _find(user, key_id)
    secret = rotate_api_key(key)
    return _value(key) | {"secret": secret}


def _revoke(user: Any, key_id: int) -> None:
    revoke_api_key(_find(user, key_id))


def _find(user: Any, key_id: int) -> ApiKey:
    key = keys_of(user).filter(pk=key_id, revoked_at=None).first()
    if key is None:
        raise NotFound("key")
    return key


def _value(key: ApiKey) -> dict[str, Any]:
    names = ("id", "name", "prefix", "scopes", "model_names", "requests_per_minute")
    times = ("created_at", "last_used_at", "expires_at", "revoked_at")
    return {name: getattr(key, name) for name in (*names, "tokens_per_day", *times)}
