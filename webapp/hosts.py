"""Which names and addresses this server answers to, and which proxies it believes, and what
it may fetch from."""

import ipaddress
import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

import psutil
from django.core.exceptions import ImproperlyConfigured

from retrieval.egress_rules import Rules, parse_rules

# Of the Host header without its port: a name, its sub-domains by a dot before it, an address.
_HOST = re.compile(r"\.?[\w-]+(\.[\w-]+)*\.?|\[[0-9A-Fa-f:.]+\]")
LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]
WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104


def allowed_hosts(values: Sequence[str], host: str) -> list[str]:
    """ALLOWED_HOSTS, and the loopback after them, by which this machine's own programs come."""
    if not values:
        return default_allowed_hosts(host)
    for value in values:
        if value != "*" and not _HOST.fullmatch(value):
            raise ImproperlyConfigured(
                f"ALLOWED_HOSTS: {value!r} is no host name; write it without https:// and without port."
            )
    return [*values, *LOOPBACK]


def default_allowed_hosts(host: str) -> list[str]:
    """The loopback, and HOST; for a wildcard HOST this machine's own names and addresses.

    Never "*": a foreign name that resolves to us would make us speak to a foreign page.
    """
    if host in LOOPBACK:
        return LOOPBACK
    if host in WILDCARDS:
        return [*LOOPBACK, *_own_names(), *_own_addresses()]
    return [*LOOPBACK, f"[{host}]" if ":" in host else host]


def trusted_networks(values: Sequence[str]) -> list[IPv4Network | IPv6Network]:
    """TRUSTED_PROXIES as networks; a bare address is a network of one."""
    try:
        return [ipaddress.ip_network(value) for value in values]
    except ValueError as error:
        raise ImproperlyConfigured(f"TRUSTED_PROXIES: {error}") from None


def egress_rules(values: Sequence[str]) -> Rules:
    """VITRINE_EGRESS_ALLOW: what may be fetched from beside the public internet."""
    try:
        return parse_rules(values)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_EGRESS_ALLOW: {error}") from None


def _own_names() -> list[str]:
    name = socket.gethostname().lower()
    return [name, f"{name}.local"]


def _own_addresses() -> list[str]:
    found = []
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET:
                found.append(address.address)
            elif address.family == socket.AF_INET6:
                found.append(f"[{address.address.split('%')[0]}]")
    return found
