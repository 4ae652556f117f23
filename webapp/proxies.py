"""The real address of a client behind proxies that we trust (TRUSTED_PROXIES)."""

import ipaddress
import logging
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from webapp.asgi_types import Application, Receive, Scope, Send

logger = logging.getLogger(__name__)

Networks = Sequence[IPv4Network | IPv6Network]
_UNIX_SOCKET_PEER = ["127.0.0.1", 0]  # it has no address; whoever it is runs on this machine
_SECURE = {"http": "https", "websocket": "wss"}


class TrustedProxies:
    """Corrects `client` and `scheme` of a scope, for direct neighbours that we trust only. Whom a socket
    of IPv6 knows as ::ffff:192.0.2.1 has its address of IPv4 again.

    With `https`, everybody comes through a proxy that ends TLS, so every scheme is the secure one.
    """

    def __init__(self, application: Application, trusted: Networks, *, https: bool) -> None:
        self.application = application
        self.trusted = trusted
        self.https = https
        self._has_warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.https and scope["type"] in _SECURE:
            scope = {**scope, "scheme": _SECURE[scope["type"]]}
        if not scope.get("client"):
            scope = {**scope, "client": _UNIX_SOCKET_PEER}
        elif (address := _address(scope["client"][0])) is not None:
            scope = {**scope, "client": [address, *scope["client"][1:]]}
        if is_trusted(scope["client"][0], self.trusted):
            scope = {**scope, **self._forwarded(scope)}
        elif not self._has_warned and scope["type"] in _SECURE and _is_forwarded(scope):
            self._has_warned = True
            logger.warning(
                "%s sends X-Forwarded-For and is not in TRUSTED_PROXIES. If it is your proxy, all"
                " visitors count as one until it is; this is said once",
                scope["client"][0],
            )
        await self.application(scope, receive, send)

    def _forwarded(self, scope: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        chain = [part for part in _values(scope, b"x-forwarded-for") if part]
        if chain and (address := client_address(chain, self.trusted)) is not None:
            found["client"] = [address, 0]
        if _values(scope, b"x-forwarded-proto")[-1:] == ["https"]:
            found["scheme"] = _SECURE[scope["type"]]
        return found


def _is_forwarded(scope: Scope) -> bool:
    return any(name == b"x-forwarded-for" for name, _ in scope["headers"])


def client_address(chain: Sequence[str], trusted: Networks) -> str | None:
    """The last address of X-Forwarded-For that is no proxy of ours; None where no address is there.

    From the right, since whatever stands further left was sent by the client itself.
    """
    address = None
    for part in reversed(chain):
        address = _address(part)
        if address is None or not is_trusted(address, trusted):
            break
    return address


def _address(part: str) -> str | None:
    """Some proxies write a port behind the address, with brackets around one of IPv6; some "unknown"."""
    bare = part
    if part.startswith("["):
        bare = part[1:].partition("]")[0]
    elif part.count(":") == 1:
        bare = part.partition(":")[0]
    try:
        ip = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def is_trusted(address: str, trusted: Networks) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(ip.version == network.version and ip in network for network in trusted)


def _values(scope: Any, header: bytes) -> list[str]:
    """All values of a list header, from several lines too, in order."""
    lines: Iterable[bytes] = (value for name, value in scope["headers"] if name == header)
    return [part.strip() for line in lines for part in line.decode("latin1").split(",")]
