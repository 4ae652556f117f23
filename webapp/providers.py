"""Sign-in providers out of the environment: Google, GitHub, Microsoft and any OpenID Connect server."""

import os
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.env import env_secret, env_str

_OIDC_START = "VITRINE_OIDC_"
_OIDC_ENDINGS = ("URL", "CLIENT_ID", "CLIENT_SECRET", "CLIENT_SECRET_FILE", "TITLE")
_OIDC_VARIABLE = re.compile(rf"{_OIDC_START}([A-Z0-9_]+?)_(?:{'|'.join(_OIDC_ENDINGS)})")
_SHARED_TENANTS = ("common", "organizations", "consumers")
_GOOGLE = "https://accounts.google.com"


@dataclass(frozen=True, slots=True)
class SignInProvider:
    """`kind` is allauth's package: openid_connect, github or microsoft. `id` is in addresses and, with
    a person's id there (`sub`), in the rows that link accounts."""

    id: str
    title: str
    kind: str
    client_id: str
    client_secret: str = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict)


def sign_in_providers() -> tuple[SignInProvider, ...]:
    """Raises ImproperlyConfigured for half of one."""
    known = [
        _provider("VITRINE_GOOGLE", "google", "Google", "openid_connect", server_url=_GOOGLE),
        _provider("VITRINE_GITHUB", "github", "GitHub", "github"),
        _microsoft(),
    ]
    return tuple(one for one in (*known, *_openid_connect_servers()) if one)


def allauth_settings(providers: tuple[SignInProvider, ...]) -> dict[str, Any]:
    """The value of SOCIALACCOUNT_PROVIDERS. What PKCE is for, see RFC 7636; all of them know it."""
    made: dict[str, Any] = {}
    for one in providers:
        kind = made.setdefault(one.kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        kind["APPS"].append(
            {
                "provider_id": one.id if one.kind == "openid_connect" else "",
                "name": one.title,
                "client_id": one.client_id,
                "secret": one.client_secret,
                "settings": one.options,
            }
        )
    return made


def _microsoft() -> SignInProvider | None:
    """Its addresses are unconfirmed, except to an organisation that names itself: they are its own."""
    tenant = env_str("VITRINE_MICROSOFT_TENANT", "common")
    if not re.fullmatch(r"[A-Za-z0-9.-]+", tenant):
        raise ImproperlyConfigured("VITRINE_MICROSOFT_TENANT must be the id or name of a tenant.")
    is_own = tenant not in _SHARED_TENANTS
    options = {"tenant": tenant, "verified_email": is_own}
    return _provider("VITRINE_MICROSOFT", "microsoft", "Microsoft", "microsoft", **options)


def _openid_connect_servers() -> list[SignInProvider | None]:
    names = set()
    for variable in os.environ:
        if not variable.startswith(_OIDC_START):
            continue
        match = _OIDC_VARIABLE.fullmatch(variable)
        if match is None:
            raise ImproperlyConfigured(
                f"{variable} is unknown; it is {_OIDC_START}NAME_ and {', '.join(_OIDC_ENDINGS)}."
            )
        if env_str(variable):
            names.add(match[1])
    return [_openid_connect(name) for name in sorted(names)]


def _openid_connect(name: str) -> SignInProvider | None:
    start = f"{_OIDC_START}{name}"
    id_ = name.lower().replace("_", "-")
    if id_ in ("google", "github", "microsoft"):
        raise ImproperlyConfigured(f"{start}_…: {id_} has variables of its own, VITRINE_{name}_….")
    if id_ == "ldap" and env_str("VITRINE_LDAP_URL"):
        raise ImproperlyConfigured(f"{start}_…: the directory of VITRINE_LDAP_URL is called so.")
    url = env_str(f"{start}_URL").rstrip("/")
    parts = urlsplit(url)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or parts.scheme not in (("https", "http") if is_local else ("https",)):
        raise ImproperlyConfigured(f"{start}_URL must be the https address of the issuer.")
    title = env_str(f"{start}_TITLE", name.replace("_", " ").title())
    return _provider(start, id_, title, "openid_connect", server_url=url)


def _provider(start: str, id_: str, title: str, kind: str, **options: Any) -> SignInProvider | None:
    client_id = env_str(f"{start}_CLIENT_ID")
    secret = env_secret(f"{start}_CLIENT_SECRET")
    if not client_id and not secret and not start.startswith(_OIDC_START):
        return None
    if not client_id or not secret:
        raise ImproperlyConfigured(f"{start}_CLIENT_ID and {start}_CLIENT_SECRET go together.")
    return SignInProvider(id_, title, kind, client_id, secret, options)
