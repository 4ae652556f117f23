"""Access and refresh tokens as text: JWTs (RFC 7519) that this installation signs and reads.

Knows no rows: whether a token's family still lives is for webapp/principal.py and
webapp/token_families.py to ask, each time.
"""

import time
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import jwt
from jwt.utils import base64url_encode

from chat.sealing import derived_key, secret_keys

ACCESS_S = 15 * 60
REFRESH_S = 7 * 24 * 3600
LEEWAY_S = 30  # for processes on machines whose clocks differ
MAX_CHARS = (
    512  # ours have 350; a header of nested lists would else go deep before anything is checked
)

Use = Literal["access", "refresh"]

_ALGORITHM = "HS256"
_ISSUER = "vitrine"
_TYPES: dict[Use, str] = {"access": "at+jwt", "refresh": "rt+jwt"}
_LIFETIMES_S: dict[Use, int] = {"access": ACCESS_S, "refresh": REFRESH_S}
_REQUIRED = ["iss", "aud", "sub", "sid", "num", "iat", "nbf", "exp"]


class InvalidToken(Exception):
    """Not ours, not for this use, altered, expired, or not valid yet."""


@dataclass(frozen=True, slots=True)
class Claims:
    """`number` counts the refreshes of the family before this token."""

    user_id: int
    family: UUID
    number: int


def write_token(claims: Claims, use: Use) -> str:
    now_s = int(time.time())
    payload = {
        "iss": _ISSUER,
        "aud": _audience(use),
        "sub": str(claims.user_id),
        "sid": str(claims.family),
        "num": claims.number,
        "iat": now_s,
        "nbf": now_s,
        "exp": now_s + _LIFETIMES_S[use],
    }
    return jwt.encode(
        payload, _key(secret_keys()[0], use), _ALGORITHM, headers={"typ": _TYPES[use]}
    )


def read_token(text: str, use: Use) -> Claims:
    """Raises InvalidToken. Source of the checks: RFC 8725, JSON Web Token best current practices."""
    if len(text) > MAX_CHARS or not text.isascii():
        raise InvalidToken
    try:
        whole = _decoded(text, use)
        claims = _claims(whole["payload"])
    except (jwt.PyJWTError, ValueError, TypeError):
        raise InvalidToken from None
    # Nothing else in the header: what it may say of keys and extensions is nothing that we would obey.
    if whole["header"] != {"alg": _ALGORITHM, "typ": _TYPES[use]}:
        raise InvalidToken
    # Base64 has several spellings of the same bytes, of which the signature covers none of its own.
    if text.rpartition(".")[2] != base64url_encode(whole["signature"]).decode():
        raise InvalidToken
    return claims


def _decoded(text: str, use: Use) -> dict[str, Any]:
    """By the key that has signed it, the present one or one of before. Raises jwt.PyJWTError."""
    problem: jwt.PyJWTError = jwt.InvalidSignatureError()
    for secret_key in secret_keys():
        try:
            return jwt.decode_complete(
                text,
                _key(secret_key, use),
                algorithms=[_ALGORITHM],
                audience=_audience(use),
                issuer=_ISSUER,
                leeway=LEEWAY_S,
                options={"require": _REQUIRED},
            )
        except jwt.InvalidSignatureError as error:
            problem = error
    raise problem


def _claims(payload: dict[str, Any]) -> Claims:
    user_id, number = int(payload["sub"]), payload["num"]
    if type(number) is not int:
        raise TypeError
    return Claims(user_id, UUID(payload["sid"]), number)


def _audience(use: Use) -> str:
    return f"vitrine/{use}"


def _key(secret_key: str, use: Use) -> bytes:
    """One for each use."""
    return derived_key(secret_key, f"vitrine {use} tokens 1".encode())
