"""Connections out, to addresses that have been checked, and over when their time is."""

import socket
import ssl
import threading
from collections.abc import Iterable
from functools import cache
from time import monotonic
from typing import Any

import httpcore2
import psutil

from retrieval.egress_rules import Address, to_address

CONNECT_TIMEOUT_S = 10.0  # of one address

UNREACHABLE = (
    "Nothing can be fetched from this address. It has to be of a server on the public internet that"
    " answers, or of one that the administrator permits."
)


class Unfetchable(Exception):
    """What a URL serves could not be had; the message says why, to whoever gave the URL.

    Codes: invalid_url, unreachable, bad_certificate, refused, not_found, too_many_redirects, too_large,
    timed_out, broken_off.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Deadline:
    """When all has to be done."""

    def __init__(self, timeout_s: float) -> None:
        self._end_s = monotonic() + timeout_s

    def left_s(self, at_most_s: float | None = None) -> float:
        """Seconds, more than 0. Raises Unfetchable once there are none."""
        left_s = self._end_s - monotonic()
        if left_s <= 0:
            raise Unfetchable("timed_out", "The server took too long to send this.")
        return left_s if at_most_s is None else min(left_s, at_most_s)


def look_up(host: str, port: int, deadline: Deadline) -> list[Address]:
    """Empty where the name is unknown. In a thread of its own, for the system's resolver knows no limit
    of time."""
    found: list[Address] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(dict.fromkeys(to_address(str(answer[4][0])) for answer in answers))
        except (OSError, UnicodeError, ValueError):
            return

    thread = threading.Thread(target=ask, daemon=True, name="resolver")
    thread.start()
    thread.join(deadline.left_s(CONNECT_TIMEOUT_S))
    return [] if thread.is_alive() else found


def own_addresses() -> list[Address]:
    families = (socket.AF_INET, socket.AF_INET6)
    return [
        to_address(one.address)
        for interface in psutil.net_if_addrs().values()
        for one in interface
        if one.family in families
    ]


class Pinned(httpcore2.NetworkBackend):
    """Connects to checked addresses, whatever name it is asked for."""

    def __init__(self, addresses: Iterable[Address], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, *args: Any, **kwargs: Any
    ) -> httpcore2.NetworkStream:
        for address in self._addresses:
            try:
                timeout_s = self._deadline.left_s(CONNECT_TIMEOUT_S)
                stream = self._backend.connect_tcp(str(address), port, timeout=timeout_s)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
            return _Timed(stream, self._deadline)
        raise Unfetchable("unreachable", UNREACHABLE)


class _Timed(httpcore2.NetworkStream):
    """A connection all of which is over at the deadline, however often a little arrives."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        # A certificate never names the root's dot.
        name = server_hostname.removesuffix(".") if server_hostname else None
        left_s = self._deadline.left_s(CONNECT_TIMEOUT_S)
        return _Timed(self._stream.start_tls(ssl_context, name, left_s), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@cache
def trusted() -> ssl.SSLContext:
    """The system's authorities, or those of SSL_CERT_FILE."""
    return httpcore2.default_ssl_context()
