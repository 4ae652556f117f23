"""Secrets that have to be read again, encrypted at rest with a key made of SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"vitrine sealed secrets 1"


class Unreadable(Exception):
    """It was sealed with another SECRET_KEY."""


def seal(text: str) -> str:
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises Unreadable."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def _box() -> MultiFernet:
    """Seals with the present key, reads with those of before too."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    derived = [derived_key(str(key), _PURPOSE) for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])


def derived_key(secret_key: str, purpose: bytes) -> bytes:
    """32 bytes for this purpose alone: they say nothing about those for another."""
    # SECRET_KEY is long and random, so nothing slow is needed.
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
    return derive.derive(secret_key.encode())
