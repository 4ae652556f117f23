"""Who is asking: the one function that decides it, for HTTP. Sockets ask for many cookies together
(socket_users.py), and are told the same.

No other code reads the session cookie, or the Authorization or X-Api-Key header.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from secrets import compare_digest
from types import SimpleNamespace
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser

from chat.db import in_db
from chat.gathering import Gathering
from webapp.api_keys import find_api_keys, mark_used
from webapp.connections import releasing
from webapp.models import ApiKey, Feature, SignIn, User
from webapp.tenancy import as_user
from webapp.tokens import InvalidToken, read_token

AuthMethod = Literal["none", "session", "key", "token"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks and how they proved it. `api_key` is set for the method "key"; `session_key` for
    "session", and for "token", where it is the key of the session that the token's family lives by."""

    user: User | AnonymousUser
    method: AuthMethod
    api_key: ApiKey | None = None
    session_key: str | None = None


NOBODY = Principal(AnonymousUser(), "none")


class Refused(Exception):
    """Credentials were sent and are not accepted; `status` and `code` go to the client."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def principal_for(
    session: Any,
    *,
    has_session_cookie: bool,
    authorization: str = "",
    x_api_key: str = "",
) -> Principal:
    """Decide by `session` (a session store), by a key (a bearer's in the Authorization header, or in
    X-Api-Key, where Anthropic's clients send it) or by an access token, a bearer's.

    Raises Refused: 400 for two at once, 401 for an unknown key or a token that is not valid (any more),
    403 for a key of a suspended user.
    A stale session makes a nobody, not an error: the browser will send it until it is replaced.
    """
    scheme, _, secret = authorization.partition(" ")
    secrets = [secret.strip()] if scheme.lower() == "bearer" else []
    is_token = bool(secrets) and _is_token(secrets[0])
    secrets += [x_api_key.strip()] if x_api_key else []
    if len(secrets) + has_session_cookie > 1:
        raise Refused(
            400,
            "ambiguous_credentials",
            "Send one of a session cookie, an API key and an access token, and once.",
        )
    if secrets and not is_token:
        return await _keys.ask(secrets[0])
    if secrets:
        return await sync_to_async(releasing(_by_token))(secrets[0])
    if has_session_cookie:
        return await sync_to_async(releasing(_by_session))(session)
    return NOBODY


async def _by_keys(secrets: Sequence[str]) -> list[Principal | Exception]:
    return await in_db(_decide_by_keys)(secrets)


def _decide_by_keys(secrets: Sequence[str]) -> list[Principal | Exception]:
    found: list[Principal | Exception] = [_by_key(key) for key in find_api_keys(secrets)]
    mark_used(one.api_key for one in found if isinstance(one, Principal) and one.api_key)
    return found


_keys = Gathering(_by_keys)


def is_directory(authorization: str) -> bool:
    """Whether this header holds VITRINE_SCIM_TOKEN, as a bearer's."""
    scheme, _, token = authorization.partition(" ")
    known = settings.SCIM_TOKEN
    # Hashed, so that the time tells nothing of the length either.
    is_known = compare_digest(_digest(token.strip()), _digest(known))
    return bool(known) and scheme.lower() == "bearer" and is_known


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _by_key(key: ApiKey | None) -> Principal | Refused:
    if key is None:
        return Refused(401, "invalid_api_key", "This API key is unknown, revoked or expired.")
    if not key.user.is_active:
        return Refused(403, "account_suspended", "The account of this API key is suspended.")
    if Feature.API_KEYS not in key.user.tier.features:
        return Refused(
            403, "api_keys_not_allowed", "The plan of this API key's user has no API keys."
        )
    return Principal(key.user, "key", key)


def _is_token(secret: str) -> bool:
    """Keys begin with vt_ and hold no dot; tokens are three parts with dots between."""
    return "." in secret and not secret.startswith("vt_")


def _by_token(text: str) -> Principal:
    """The session is asked each time: what ends it (a sign-out, a new password, a suspension) ends its
    tokens with it, at once."""
    refused = Refused(401, "invalid_token", "This access token is not valid, or no longer.")
    try:
        claims = read_token(text, "access")
    except InvalidToken:
        raise refused from None
    with as_user(claims.user_id):
        family = SignIn.objects.filter(token_family=claims.family)
        session_key = family.values_list("session_key", flat=True).first()
    user = user_of_session(session_store(session_key)) if session_key else None
    if user is None or user.pk != claims.user_id:
        raise refused
    return Principal(user, "token", session_key=session_key)


def _by_session(session: Any) -> Principal:
    user = user_of_session(session)
    if user is None:
        return NOBODY
    return Principal(user, "session", session_key=session.session_key)


def session_store(session_key: str | None = None) -> Any:
    """Reads nothing before it is asked. Without a key, an empty one that has none before it is saved."""
    return import_module(settings.SESSION_ENGINE).SessionStore(session_key)


def user_of_session(session: Any) -> User | None:
    """Django's own function decides: it knows suspended users, changed passwords, rotated secrets."""
    user = get_user(SimpleNamespace(session=_KeptSession(session)))  # type: ignore[arg-type]
    return user if isinstance(user, User) else None


class _KeptSession:
    """A session that an old SECRET_KEY proves keeps its key, where Django would give it another: only
    the answer to a page could tell the browser, and sockets, tokens and lists of sign-ins look at it,
    too. `manage.py reseal` writes into it what the present key proves."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.get, self.flush = session.get, session.flush

    def __getitem__(self, name: str) -> Any:
        return self._session[name]

    def __setitem__(self, name: str, value: Any) -> None:
        pass

    def cycle_key(self) -> None:
        pass
