"""REDIS_URL, for the cache, the channel layer and Celery's queue alike."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.servers.sockets import valkey_socket

_CERTIFICATES = ("required", "optional", "none")


def redis_url(value: str, data_dir: Path) -> str:
    """The embedded Valkey's where there is none. Raises ImproperlyConfigured, without the password."""
    if not value:
        return f"unix://{valkey_socket(data_dir)}"
    try:
        url = urlsplit(value)
        is_whole = bool(url.path if url.scheme == "unix" else url.hostname and url.port != 0)
    except ValueError:
        is_whole = False  # the port is no number
    if not is_whole or url.scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured(
            "REDIS_URL is not understood; write redis://:password@host:port/0, rediss://… or unix:///path."
        )
    for checked in parse_qs(url.query).get("ssl_cert_reqs", ()):
        if checked not in _CERTIFICATES:
            choices = ", ".join(_CERTIFICATES)
            raise ImproperlyConfigured(f"REDIS_URL: ssl_cert_reqs must be one of {choices}.")
    return value


def broker_url(url: str) -> str:
    """As kombu reads it, which takes any certificate unless it is told otherwise."""
    if url.startswith("rediss://") and "ssl_cert_reqs" not in parse_qs(urlsplit(url).query):
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"
    return url.replace("unix://", "redis+socket://", 1)
