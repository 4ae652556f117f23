"""Texts told apart without being kept: who reads the table cannot try what somebody may have written."""

from django.utils.crypto import salted_hmac


def text_hash(user: str, text: str) -> str:
    """With the site's secret, and the user: what others have written is no one's to compare with."""
    said = f"{user}\0{text}".encode("utf-8", "surrogatepass")
    return salted_hmac("moderation.text", said, algorithm="sha256").hexdigest()
