"""A small sum that a browser does before it may sign up, so that a thousand accounts cost a program
time: hashcash, by SHA-256 (static/js/signup-work.js does it).

A challenge is signed, of this hour, and good for one form.
"""

import secrets
from collections.abc import Mapping
from hashlib import sha256

from django.conf import settings
from django.core import signing
from django.core.cache import cache

LIFETIME_S = 3600
TRAP = "homepage"
"""A field that people do not see, and programs fill in."""

_SALT = "webapp.signup_work"
_MAX_NONCE_CHARS = 20


class NotWorked(Exception):
    """The sum is missing, wrong, too old, or was used before."""


def new_challenge() -> str:
    return signing.dumps(secrets.token_urlsafe(12), salt=_SALT)


def check_work(sent: Mapping[str, str]) -> None:
    """Use the challenge of a form up. Raises NotWorked."""
    if not settings.SIGNUP_WORK_BITS:
        return
    challenge, nonce = sent.get("challenge", ""), sent.get("nonce", "")
    try:
        signing.loads(challenge, salt=_SALT, max_age=LIFETIME_S)
    except signing.BadSignature:
        raise NotWorked from None
    if not nonce or len(nonce) > _MAX_NONCE_CHARS:
        raise NotWorked
    if num_zero_bits(challenge, nonce) < settings.SIGNUP_WORK_BITS:
        raise NotWorked
    key = "signup-work:" + sha256(challenge.encode()).hexdigest()
    if not cache.add(key, 1, timeout=LIFETIME_S):
        raise NotWorked


def num_zero_bits(challenge: str, nonce: str) -> int:
    """At the front of the hash of both."""
    digest = sha256(f"{challenge}:{nonce}".encode("utf-8", "surrogatepass")).digest()
    return 256 - int.from_bytes(digest).bit_length()
