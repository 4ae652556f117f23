"""Which addresses may be fetched from: those of the public internet, and what the operator permits.

Judged is the address that is connected to, never the name or the way a number was written. Source for
what is no public address: IANA's special-purpose registries for IPv4 and IPv6.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

USUAL_PORTS = (80, 443)

_NOT_PUBLIC = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' networks
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, where clouds tell machines their secrets
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "3fff::/20",
    )
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # of IPv6 nothing else is given to anybody
_NAT64 = IPv6Network("64:ff9b::/96")
# What a name may stand for once it is permitted. Link-local addresses are not among it: whoever
# answers for the name could else send us to a cloud's metadata.
_PRIVATE = [
    ip_network(network)
    for network in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
]
_NAME = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_WITH_PORT = re.compile(r"(?P<where>\[[^\]]*\]|[^:\[\]]+):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Rule:
    """A host or a network that may be fetched from, by this port; None: by the usual ones."""

    host: str = ""
    network: Network | None = None
    port: int | None = None

    def fits_port(self, port: int) -> bool:
        return port in USUAL_PORTS if self.port is None else port == self.port

    def fits(self, host: str, address: Address) -> bool:
        if self.network is not None:
            return address in self.network
        return host == self.host and (is_public(address) or _is_in(address, _PRIVATE))


@dataclass(frozen=True, slots=True)
class Rules:
    """What is permitted beside the public internet."""

    rules: tuple[Rule, ...] = ()

    def permit_port(self, port: int) -> bool:
        """Whether there is anything that may be fetched by this port."""
        return port in USUAL_PORTS or any(rule.fits_port(port) for rule in self.rules)

    def permit(self, host: str, address: Address, port: int, own: Sequence[Address] = ()) -> bool:
        """Whether `host`, which has this address, may be fetched from. `own` are this machine's
        addresses, which are not public to it, whatever they are to others."""
        real = behind(address)
        if port in USUAL_PORTS and is_public(real) and real not in own:
            return True
        return any(rule.fits_port(port) and rule.fits(host, real) for rule in self.rules)


def parse_rules(entries: Sequence[str]) -> Rules:
    """Each is a host name, an address or a network, perhaps with `:PORT`. Raises ValueError."""
    return Rules(tuple(_rule(entry) for entry in entries))


def _rule(entry: str) -> Rule:
    found = _WITH_PORT.fullmatch(entry)
    where, port = (found["where"], int(found["port"])) if found else (entry, None)
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"{entry!r} has no port from 1 to 65535.")
    if where.startswith("[") and where.endswith("]"):
        where = where[1:-1]
    try:
        return Rule(network=ip_network(where), port=port)
    except ValueError as error:
        name = where.lower().removesuffix(".")
        # What looks like an address and is none would never be the name of anything.
        is_number = name.rpartition(".")[2].isdigit()
        if "/" in name or is_number or len(name) > 253 or not _NAME.fullmatch(name):
            raise ValueError(
                f"{entry!r} is no host name, address or network, with or without a port ({error})."
            ) from None
        return Rule(host=name, port=port)


def is_public(address: Address) -> bool:
    """Whether it belongs to the internet, as everybody reaches it."""
    address = behind(address)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not _is_in(address, _NOT_PUBLIC)


def behind(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, where it is one of a translation."""
    if not isinstance(address, IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or address


def to_address(text: str) -> Address:
    """Without the zone of a link-local one."""
    return ip_address(text.partition("%")[0])


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
