"""Where people find this site, for links that no request asked for."""

from django.conf import settings

from webapp.hosts import LOOPBACK, WILDCARDS, default_allowed_hosts
from webapp.serving.listener import url_of


def site_url() -> str:
    """As `https://chat.example.org`, without a slash at its end.

    Behind HTTPS a proxy gives the name, and a wildcard HOST has none: it is the first that the operator
    put into ALLOWED_HOSTS and others can use. What this machine calls itself may be known to nobody, as
    in a container.
    """
    if settings.HTTPS:
        return f"https://{_name_for_others() or LOOPBACK[0]}"
    if settings.HOST in WILDCARDS and (name := _name_for_others()):
        return f"http://{name}:{settings.PORT}"
    return url_of(settings.HOST, settings.PORT)


def _name_for_others() -> str:
    """Empty where neither the operator nor HOST names one."""
    of_host = [] if settings.HOST in WILDCARDS else default_allowed_hosts(settings.HOST)
    names = (name.removeprefix(".") for name in settings.SITE_NAMES or of_host if name != "*")
    return next((name for name in names if name not in LOOPBACK), "")
