"""How letters reach the server that SMTP_HOST names."""

from email.utils import formataddr, parseaddr

from django.core.exceptions import ImproperlyConfigured

from webapp.env import env_bool, env_str

_IMPLICIT_PORT = 465  # RFC 8314: where TLS begins with the connection


def smtp_encryption(port: int) -> tuple[bool, bool]:
    """Whether by STARTTLS, and whether from the first byte, as SMTP_TLS says; nowhere both."""
    value = env_str("SMTP_TLS").lower()
    try:
        is_encrypted = value == "implicit" or env_bool("SMTP_TLS", True)
    except ImproperlyConfigured:
        words = f"SMTP_TLS must be true, false or implicit, not {value!r}."
        raise ImproperlyConfigured(words) from None
    is_implicit = is_encrypted and (value == "implicit" or port == _IMPLICIT_PORT)
    return is_encrypted and not is_implicit, is_implicit


def sender(address: str) -> str:
    """With a name, as `Vitrine <vitrine@example.org>`, where the address has none of its own."""
    name, bare = parseaddr(address)
    return address if name else formataddr(("Vitrine", bare))
