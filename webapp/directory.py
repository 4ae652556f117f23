"""Asking a directory by LDAP who somebody is. Knows no accounts: webapp/directory_people.py does.

A password is proved by a bind as the entry; nothing keeps it. Referrals are not followed, aliases not
resolved. All of it blocks, for a few seconds at most, so it belongs into threads, and no transaction
should be open meanwhile.
"""

import logging
import secrets
import socket
import ssl
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import BoundedSemaphore
from typing import Any

from chat.storable import storable
from webapp.directory_ids import id_filter, is_id, read_id
from webapp.directory_settings import DirectorySettings, LdapServer
from webapp.ldap3_import import escape_filter_chars, ldap3

logger = logging.getLogger(__name__)

MAX_LOGIN_CHARS = 254
MAX_PASSWORD_CHARS = 1024
_AT_ONCE = BoundedSemaphore(16)  # a directory that hangs must not take every thread along
_BATCH = 50
_SUCCESS, _SIZE_LIMIT_EXCEEDED = 0, 4  # RFC 4511, appendix A
# What says something of the server, and nothing of a password: operationsError, protocolError,
# strongerAuthRequired, confidentialityRequired, busy, unavailable, other.
_OF_THE_SERVER = (1, 2, 8, 13, 51, 52, 80)
_FAILURES = (ldap3.core.exceptions.LDAPExceptionError, OSError)


class DirectoryUnavailable(Exception):
    """It did not answer, or not so that anything follows from it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Somebody. `unique_id` is theirs for good, whatever the entry is called; `email` may be empty.
    `groups` are the names, casefolded, of those below the group base."""

    unique_id: str
    dn: str
    email: str
    name: str
    uid: str = ""
    groups: frozenset[str] = field(default_factory=frozenset)


def prove(config: DirectorySettings, login: str, password: str) -> Entry | None:
    """Who has this login and this password; None where nobody has, or several entries match.

    Raises DirectoryUnavailable.
    """
    # An empty password would be an unauthenticated bind, which succeeds (RFC 4513, section 5.1.2).
    if not password or len(password) > MAX_PASSWORD_CHARS or "\0" in password:
        return None
    if not _is_plain(login):
        return None
    with _conversation(config) as service:
        wanted = config.user_filter.replace("%(login)s", escape_filter_chars(login))
        found = _people(service, config, wanted, size_limit=2)
        entry = found[0] if len(found) == 1 else None
        # Whoever is not there is asked for as well, so that the time does not tell who is.
        dn = entry.dn if entry else f"cn={secrets.token_hex(8)},{config.user_base}"
        if not _opens(config, dn, password) or entry is None:
            return None
        return replace(entry, groups=_groups(service, config, entry))


def entries(config: DirectorySettings, unique_ids: Iterable[str]) -> dict[str, Entry]:
    """Those of them that are there and match the filter of people. What is no id is nobody's. Raises
    DirectoryUnavailable."""
    ids, found = (one for one in unique_ids if is_id(config, one)), {}
    anybody = config.user_filter.replace("%(login)s", "*")
    with _conversation(config) as service:
        while batch := list(islice(ids, _BATCH)):
            named = "".join(id_filter(config, one) for one in batch)
            for entry in _people(service, config, f"(&{anybody}(|{named}))"):
                groups = _groups(service, config, entry)
                found[entry.unique_id] = replace(entry, groups=groups)
    return found


def _is_plain(login: str) -> bool:
    """Directories ignore invisible characters, widths and double spaces in what they compare: written
    so, one login would be a thousand to our rate limits."""
    normal = unicodedata.normalize("NFKC", " ".join(login.split()))
    return 0 < len(login) <= MAX_LOGIN_CHARS and login.isprintable() and login == normal


# --- questions ------------------------------------------------------------------------------------


def _people(
    service: Any, config: DirectorySettings, wanted: str, size_limit: int = 0
) -> list[Entry]:
    attributes = [config.unique_id, config.mail, config.name, "uid"]
    rows = _search(service, config.user_base, wanted, attributes, size_limit)
    return [_entry(config, dn, values) for dn, values in rows]


def _entry(config: DirectorySettings, dn: str, values: dict[str, bytes]) -> Entry:
    def text(attribute: str) -> str:
        return storable(values.get(attribute.lower(), b"").decode(errors="replace").strip())

    raw = values.get(config.unique_id.lower(), b"")
    if not raw:
        raise DirectoryUnavailable(f"it does not tell {config.unique_id}")
    try:
        unique_id = read_id(config, raw)
    except ValueError as error:
        raise DirectoryUnavailable(f"it tells a {config.unique_id}, and {error}") from None
    return Entry(unique_id, dn, text(config.mail).lower(), text(config.name), text("uid"))


def _groups(service: Any, config: DirectorySettings, entry: Entry) -> frozenset[str]:
    if not config.group_base:
        return frozenset()
    wanted = config.group_filter.replace("%(dn)s", escape_filter_chars(entry.dn))
    wanted = wanted.replace("%(uid)s", escape_filter_chars(entry.uid))
    rows = _search(service, config.group_base, wanted, [config.group_name])
    names = (values.get(config.group_name.lower(), b"") for _, values in rows)
    return frozenset(name.decode(errors="replace").casefold() for name in names if name)


def _search(
    service: Any, base: str, wanted: str, attributes: list[str], size_limit: int = 0
) -> list[tuple[str, dict[str, bytes]]]:
    """(DN, first values by attribute in small letters) of each. Raises DirectoryUnavailable."""
    try:
        service.search(
            base,
            wanted,
            search_scope=ldap3.SUBTREE,
            dereference_aliases=ldap3.DEREF_NEVER,
            attributes=attributes,
            size_limit=size_limit,
        )
    except _FAILURES as error:
        raise DirectoryUnavailable(type(error).__name__) from error
    code = service.result["result"]
    if code not in (_SUCCESS, _SIZE_LIMIT_EXCEEDED if size_limit else _SUCCESS):
        raise DirectoryUnavailable(f"a search ended with {service.result['description']}")
    rows = [row for row in service.response or [] if row["type"] == "searchResEntry"]
    return [
        (row["dn"], {name.lower(): vs[0] for name, vs in row["raw_attributes"].items() if vs})
        for row in rows
    ]


# --- connections ----------------------------------------------------------------------------------


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """By a context of Python's, which checks the name in the certificate; ldap3 does that by itself and
    knows no addresses in certificates."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self.context = context

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        name = connection.server.host
        # Else small messages wait for each other: 40 ms a connection.
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.socket = self.context.wrap_socket(connection.socket, server_hostname=name)


@contextmanager
def _conversation(config: DirectorySettings) -> Iterator[Any]:
    """A connection of the service account's."""
    if not _AT_ONCE.acquire(timeout=config.timeout_s):
        raise DirectoryUnavailable("too many ask at once")
    try:
        service = _connect(config, config.bind_dn, config.bind_password)
        with _closing(service):
            code = _bind(service)
            if code != _SUCCESS:
                raise DirectoryUnavailable(f"the service account's bind ended with {code}")
            yield service
    finally:
        _AT_ONCE.release()


def _opens(config: DirectorySettings, dn: str, password: str) -> bool:
    """Whether this is the password of that entry."""
    connection = _connect(config, dn, password)
    with _closing(connection):
        code = _bind(connection)
    if code in _OF_THE_SERVER:
        raise DirectoryUnavailable(f"a bind ended with {code}")
    return code == _SUCCESS


def _connect(config: DirectorySettings, dn: str, password: str) -> Any:
    """Open, and encrypted where it is to be; not bound. Raises DirectoryUnavailable."""
    reasons = []
    for server in config.servers:
        connection = _connection(config, server, dn, password)
        try:
            connection.open(read_server_info=False)
            if config.starttls:
                connection.start_tls(read_server_info=False)
            return connection
        except _FAILURES as error:
            reasons.append(f"{server.host}:{server.port}: {error}")
            _close(connection)
    raise DirectoryUnavailable("; ".join(reasons))


def _connection(config: DirectorySettings, server: LdapServer, dn: str, password: str) -> Any:
    where = ldap3.Server(
        server.host,
        server.port,
        use_ssl=server.is_tls,
        tls=_Tls(config.tls),
        get_info=ldap3.NONE,
        connect_timeout=config.timeout_s,
    )
    return ldap3.Connection(
        where,
        user=dn or None,
        password=password.encode() or None,  # as it is; a string would be changed by SASLprep
        authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
        auto_referrals=False,
        read_only=True,
        check_names=False,
        receive_timeout=config.timeout_s,
    )


def _bind(connection: Any) -> int:
    """The code of the result. Raises DirectoryUnavailable."""
    try:
        connection.bind(read_server_info=False)
    except _FAILURES as error:
        raise DirectoryUnavailable(str(error)) from error
    return int(connection.result["result"])


@contextmanager
def _closing(connection: Any) -> Iterator[None]:
    try:
        yield
    finally:
        _close(connection)


def _close(connection: Any) -> None:
    with suppress(*_FAILURES):
        connection.unbind()
    if connection.socket is not None:  # of a connection that never came to be open
        connection.socket.close()
