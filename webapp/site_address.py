"""Where people find this site, for links that no request asked for."""

from django.conf import settings

from webapp.hosts import LOOPBACK, WILDCARDS
from webapp.serving.listener import url_of


def site_url() -> str:
    """As `https://chat.example.org`, without a slash at its end.

    Behind HTTPS a proxy gives the name, and a wildcard HOST has none: it is the first of ALLOWED_HOSTS
    that others can use.
    """
    if settings.HTTPS:
        return f"https://{_name_for_others() or LOOPBACK[0]}"
    if settings.HOST in WILDCARDS and (name := _name_for_others()):
        return f"http://{name}:{settings.PORT}"
    return url_of(settings.HOST, settings.PORT)


def _name_for_others() -> str:
    """Empty where ALLOWED_HOSTS has none."""
    names = (name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*")
    return next((name for name in names if name not in LOOPBACK), "")
