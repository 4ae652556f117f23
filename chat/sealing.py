"""Secrets that have to be read again, encrypted at rest with a key made of SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"vitrine sealed secrets 1"
_MARK = b"vitrine mark of a secret key 1"


class Unreadable(Exception):
    """It was sealed with a key that is not known any more."""


def secret_keys() -> list[str]:
    """The present SECRET_KEY, then those of before, each once."""
    return list(dict.fromkeys(map(str, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS])))


def key_marks() -> list[str]:
    """By which processes tell whether they know the same keys, in the same order. They open nothing."""
    return [derived_key(key, _MARK).hex()[:16] for key in secret_keys()]


def seal(text: str) -> str:
    return _box(secret_keys()).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises Unreadable."""
    try:
        return _box(secret_keys()).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def sealed_anew(sealed: str) -> str:
    """The same where the present key opens it. Raises Unreadable."""
    try:
        _box(secret_keys()[:1]).decrypt(sealed.encode())
    except InvalidToken:
        return seal(unseal(sealed))
    return sealed


def _box(keys: list[str]) -> MultiFernet:
    """Seals with the first key, reads with all."""
    derived = [derived_key(key, _PURPOSE) for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])


def derived_key(secret_key: str, purpose: bytes) -> bytes:
    """32 bytes for this purpose alone: they say nothing about those for another."""
    # SECRET_KEY is long and random, so nothing slow is needed.
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
    return derive.derive(secret_key.encode())
