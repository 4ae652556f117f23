"""Who is asking: the one function that decides it, for HTTP and for sockets.

No other code reads the session cookie or the Authorization header.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser

from webapp.api_keys import find_api_key, mark_used
from webapp.connections import release_connections
from webapp.models import ApiKey, User

AuthMethod = Literal["none", "session", "key"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks and how they proved it. `api_key` is set for the method "key"."""

    user: User | AnonymousUser
    method: AuthMethod
    api_key: ApiKey | None = None


NOBODY = Principal(AnonymousUser(), "none")


class Refused(Exception):
    """Credentials were sent and are not accepted; `status` and `code` go to the client."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def principal_for(
    session: Any, *, has_session_cookie: bool, authorization: str = ""
) -> Principal:
    """Decide by `session` (a session store) or by a bearer key in the Authorization header.

    Raises Refused: 400 for both at once, 401 for an unknown key, 403 for a suspended user.
    A stale session makes a nobody, not an error: the browser will send it until it is replaced.
    """
    scheme, _, secret = authorization.partition(" ")
    is_bearer = scheme.lower() == "bearer"
    if is_bearer and has_session_cookie:
        raise Refused(
            400, "ambiguous_credentials", "Send either a session cookie or an API key, not both."
        )
    if is_bearer:
        return await sync_to_async(_and_release(_by_key))(secret.strip())
    if has_session_cookie:
        return await sync_to_async(_and_release(_by_session))(session)
    return NOBODY


def _by_key(secret: str) -> Principal:
    key = find_api_key(secret)
    if key is None:
        raise Refused(401, "invalid_api_key", "This API key is unknown, revoked or expired.")
    if not key.user.is_active:
        raise Refused(403, "account_suspended", "The account of this API key is suspended.")
    mark_used(key)
    return Principal(key.user, "key", key)


def _by_session(session: Any) -> Principal:
    # Django's own function: it knows suspended users, changed passwords and rotated secrets.
    user = get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]
    if not isinstance(user, User):
        return NOBODY
    return Principal(user, "session")


def _and_release(decide: Callable[[Any], Principal]) -> Callable[[Any], Principal]:
    def decide_and_release(proof: Any) -> Principal:
        try:
            return decide(proof)
        finally:
            release_connections()

    return decide_and_release
