"""Where people find this site, for links that no request asked for."""

from django.conf import settings

from webapp.serving.listener import url_of


def site_url() -> str:
    """As `https://chat.example.org`, without a slash at its end.

    Behind HTTPS a proxy gives the name, which is the first of ALLOWED_HOSTS.
    """
    if settings.HTTPS:
        return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}"
    return url_of(settings.HOST, settings.PORT)
