"""Texts told apart without being kept: who reads the table cannot try what somebody may have written."""

from django.conf import settings
from django.utils.crypto import salted_hmac


def text_hash(user: str, text: str) -> str:
    """With the site's secret, and the user: what others have written is no one's to compare with."""
    return text_hashes(user, text)[0]


def text_hashes(user: str, text: str) -> list[str]:
    """That, and those that earlier secrets of the site have made of it."""
    said = f"{user}\0{text}".encode("utf-8", "surrogatepass")
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [
        salted_hmac("moderation.text", said, key, algorithm="sha256").hexdigest() for key in keys
    ]
