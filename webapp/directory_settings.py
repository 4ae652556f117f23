"""The directory (LDAP, Active Directory) that people sign in with, out of the environment."""

import os
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.env import env_bool, env_int, env_list, env_secret, env_str

_START = "VITRINE_LDAP_"
_ENDINGS = (
    *("URL", "STARTTLS", "PLAINTEXT", "CA_FILE", "TIMEOUT_S"),
    *("BIND_DN", "BIND_PASSWORD", "BIND_PASSWORD_FILE"),
    *("USER_BASE", "USER_FILTER", "MAIL", "NAME", "UNIQUE_ID"),
    *("GROUP_BASE", "GROUP_FILTER", "GROUP_NAME", "GROUPS", "TIERS", "ADMINISTRATORS"),
)
_PORTS = {"ldap": 389, "ldaps": 636}
_USER_FILTER = "(|(uid=%(login)s)(mail=%(login)s))"
_GROUP_FILTER = "(|(member=%(dn)s)(uniqueMember=%(dn)s))"


@dataclass(frozen=True, slots=True)
class LdapServer:
    host: str
    port: int
    is_tls: bool

    @property
    def is_local(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """`servers` are asked in turn until one answers. Filters hold the places `%(login)s`, or `%(dn)s`
    and `%(uid)s`. Names of the directory's groups are casefolded; `tiers` counts from the front.
    """

    servers: tuple[LdapServer, ...]
    user_base: str
    starttls: bool = False
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context, repr=False)
    timeout_s: int = 5
    bind_dn: str = ""
    bind_password: str = field(default="", repr=False)
    user_filter: str = _USER_FILTER
    mail: str = "mail"
    name: str = "cn"
    unique_id: str = "entryUUID"
    group_base: str = ""
    group_filter: str = _GROUP_FILTER
    group_name: str = "cn"
    groups: dict[str, str] = field(default_factory=dict)
    tiers: tuple[tuple[str, str], ...] = ()
    administrators: str = ""


def directory_settings() -> DirectorySettings | None:
    """None without VITRINE_LDAP_URL. Raises ImproperlyConfigured for half of one."""
    given = {name for name in os.environ if name.startswith(_START) and env_str(name)}
    unknown = sorted(given - {_START + ending for ending in _ENDINGS})
    if unknown:
        raise ImproperlyConfigured(
            f"{unknown[0]} is unknown; it is {_START} and {', '.join(_ENDINGS)}."
        )
    if not given:
        return None
    urls = env_list(f"{_START}URL")
    if not urls:
        raise ImproperlyConfigured(f"{sorted(given)[0]} says nothing without {_START}URL.")
    starttls = env_bool(f"{_START}STARTTLS", False)
    servers = tuple(_server(url) for url in urls)
    _check_encryption(servers, starttls)
    return DirectorySettings(
        servers=servers,
        starttls=starttls,
        tls=_tls(),
        timeout_s=env_int(f"{_START}TIMEOUT_S", 5, minimum=1, maximum=60),
        **_service_account(),
        **_people(),
        **_groups(),
    )


def _server(url: str) -> LdapServer:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_bare = not (parts.path.strip("/") or parts.query or parts.username)
    if parts.scheme not in _PORTS or not parts.hostname or not is_bare:
        raise ImproperlyConfigured(
            f"{_START}URL must be as in ldaps://ldap.example.org or ldap://ldap.example.org:389,"
            f" several by comma, not {url!r}."
        )
    return LdapServer(parts.hostname, port or _PORTS[parts.scheme], parts.scheme == "ldaps")


def _check_encryption(servers: tuple[LdapServer, ...], starttls: bool) -> None:
    if starttls and any(server.is_tls for server in servers):
        raise ImproperlyConfigured(f"{_START}STARTTLS is for ldap://; ldaps:// has TLS already.")
    is_open = any(not (server.is_tls or server.is_local) for server in servers) and not starttls
    if is_open and not env_bool(f"{_START}PLAINTEXT", False):
        raise ImproperlyConfigured(
            f"{_START}URL would send passwords over the network in the clear: write ldaps://, set"
            f" {_START}STARTTLS=true, or allow it with {_START}PLAINTEXT=true."
        )


def _tls() -> ssl.SSLContext:
    """Certificates are checked, with their names, in every case: there is no way to turn it off."""
    file = env_str(f"{_START}CA_FILE") or None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise ImproperlyConfigured(f"{_START}CA_FILE cannot be read: {error}") from None


def _service_account() -> dict[str, Any]:
    dn, password = env_str(f"{_START}BIND_DN"), env_secret(f"{_START}BIND_PASSWORD") or ""
    if bool(dn) != bool(password):
        raise ImproperlyConfigured(f"{_START}BIND_DN and {_START}BIND_PASSWORD go together.")
    return {"bind_dn": dn, "bind_password": password}


def _people() -> dict[str, Any]:
    base = env_str(f"{_START}USER_BASE")
    if not base:
        raise ImproperlyConfigured(f"{_START}USER_BASE is missing: where people are looked for.")
    return {
        "user_base": _dn("USER_BASE", base),
        "user_filter": _filter("USER_FILTER", _USER_FILTER, ("%(login)s",)),
        "mail": env_str(f"{_START}MAIL", "mail"),
        "name": env_str(f"{_START}NAME", "cn"),
        "unique_id": env_str(f"{_START}UNIQUE_ID", "entryUUID"),
    }


def _groups() -> dict[str, Any]:
    groups = {left.casefold(): right for left, right in _pairs("GROUPS", is_short=True)}
    tiers = tuple((left.casefold(), right) for left, right in _pairs("TIERS"))
    administrators = env_str(f"{_START}ADMINISTRATORS").casefold()
    base = env_str(f"{_START}GROUP_BASE")
    if (groups or tiers or administrators) and not base:
        raise ImproperlyConfigured(
            f"{_START}GROUP_BASE is missing: only groups below it count, or whoever may make a group"
            " anywhere in the directory could make themselves administrator."
        )
    return {
        "group_base": _dn("GROUP_BASE", base) if base else "",
        "group_filter": _filter("GROUP_FILTER", _GROUP_FILTER, ("%(dn)s", "%(uid)s")),
        "group_name": env_str(f"{_START}GROUP_NAME", "cn"),
        "groups": groups,
        "tiers": tiers,
        "administrators": administrators,
    }


def _dn(ending: str, value: str) -> str:
    from webapp.ldap3_import import ldap3, parse_dn  # here: most sites have no directory

    try:
        parse_dn(value)
    except ldap3.core.exceptions.LDAPExceptionError:
        raise ImproperlyConfigured(f"{_START}{ending} is no DN of LDAP: {value!r}.") from None
    return value


def _filter(ending: str, default: str, places: tuple[str, ...]) -> str:
    """One that has one of these places at least, and is well formed."""
    from webapp.ldap3_import import ldap3, parse_filter

    value = env_str(_START + ending, default)
    if not any(place in value for place in places):
        raise ImproperlyConfigured(f"{_START}{ending} has to hold {' or '.join(places)}.")
    tried = value
    for place in places:
        tried = tried.replace(place, "x")
    try:
        parse_filter(tried, None, True, True, None, False)
    except ldap3.core.exceptions.LDAPExceptionError:
        raise ImproperlyConfigured(f"{_START}{ending} is no filter of LDAP: {value!r}.") from None
    return value


def _pairs(ending: str, *, is_short: bool = False) -> list[tuple[str, str]]:
    """Of LEFT=RIGHT by comma; where `is_short`, LEFT alone is LEFT=LEFT."""
    pairs = []
    for part in env_list(_START + ending):
        left, equals, right = (piece.strip() for piece in part.partition("="))
        if is_short and not equals:
            right = left
        if not left or not right:
            raise ImproperlyConfigured(f"{_START}{ending} is GROUP=NAME by comma, not {part!r}.")
        pairs.append((left, right))
    return pairs
