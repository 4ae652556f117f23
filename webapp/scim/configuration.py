"""Whether a directory may provision accounts, out of the environment."""

import re

from django.core.exceptions import ImproperlyConfigured

from webapp.env import env_secret, env_str
from webapp.providers import SignInProvider

MIN_TOKEN_CHARS = 32
_FORM = re.compile(r"[\x21-\x7e]+")  # what a header can carry, without spaces


def scim_token() -> str:
    """The bearer token of the directory; empty: there is no /scim/v2. Raises ImproperlyConfigured."""
    token = env_secret("VITRINE_SCIM_TOKEN") or ""
    if token and (len(token) < MIN_TOKEN_CHARS or not _FORM.fullmatch(token)):
        raise ImproperlyConfigured(
            f"VITRINE_SCIM_TOKEN must have at least {MIN_TOKEN_CHARS} characters, all of them"
            " printable ASCII and no space. `openssl rand -base64 48` makes one."
        )
    return token


def scim_provider(token: str, providers: tuple[SignInProvider, ...]) -> str:
    """The id of the sign-in provider of the same organisation, which may open the accounts that its
    directory has made; empty: none may. Raises ImproperlyConfigured."""
    name = env_str("VITRINE_SCIM_PROVIDER")
    if name and not token:
        raise ImproperlyConfigured("VITRINE_SCIM_PROVIDER needs VITRINE_SCIM_TOKEN.")
    known = [one.id for one in providers]
    if name and name not in known:
        there = ", ".join(known) or "none is configured"
        raise ImproperlyConfigured(
            f"VITRINE_SCIM_PROVIDER must name a sign-in provider ({there}), not {name!r}."
        )
    return name
