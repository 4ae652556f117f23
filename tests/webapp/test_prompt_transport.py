"""What a connection is given reaches its reader at once, and in order, however it is given."""

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.protocol import Protocol

from webapp.serving.prompt_transport import PromptTransport


class _Reactor:
    """Turns only when it is told to."""

    def __init__(self) -> None:
        self.writers: list[Any] = []

    def addReader(self, transport: Any) -> None:  # noqa: N802
        """Nobody writes to us here."""

    def addWriter(self, transport: Any) -> None:  # noqa: N802
        self.writers.append(transport)

    def removeReader(self, transport: Any) -> None:  # noqa: N802
        """Nobody writes to us here."""

    def removeWriter(self, transport: Any) -> None:  # noqa: N802
        self.writers = [one for one in self.writers if one is not transport]


@pytest.fixture
def ends() -> Iterator[tuple[PromptTransport, socket.socket, _Reactor]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    reactor, port = _Reactor(), SimpleNamespace(_realPortNumber=0)
    address = ("127.0.0.1", 0)
    transport = PromptTransport(ours, Protocol(), address, port, 1, reactor)  # type: ignore[no-untyped-call]
    yield transport, theirs, reactor
    ours.close()
    theirs.close()


WAYS: list[Callable[[PromptTransport, list[bytes]], None]] = [
    lambda transport, pieces: transport.write(b"".join(pieces)),
    lambda transport, pieces: transport.writeSequence(pieces),
]


@pytest.mark.parametrize("give", WAYS, ids=["write", "writeSequence"])
def test_the_kernel_has_it_before_the_reactor_turns(give: Any, ends: Any) -> None:
    transport, theirs, reactor = ends
    give(transport, [b"5\r\n", b"hello", b"\r\n"])
    assert theirs.recv(100) == b"5\r\nhello\r\n"
    assert reactor.writers == []


@pytest.mark.parametrize("give", WAYS, ids=["write", "writeSequence"])
def test_what_the_kernel_does_not_take_comes_behind_it(give: Any, ends: Any) -> None:
    transport, theirs, reactor = ends
    given = bytes(range(256)) * 4096
    give(transport, [given[:1000], given[1000:]])
    give(transport, [b"the", b" end"])
    assert reactor.writers  # its next turns see to the rest
    got = b""
    while len(got) < len(given) + 7:
        got += theirs.recv(2**16)
        transport.doWrite()
    assert got == given + b"the end"


def test_what_is_written_together_goes_as_one(ends: Any) -> None:
    transport, theirs, _ = ends
    sent: list[bytes] = []
    send = transport.writeSomeData
    transport.writeSomeData = lambda data: sent.append(data) or send(data)
    with transport.together():
        transport.write(b"head ")
        transport.writeSequence([b"and ", b"body"])
        assert sent == []
    transport.write(b"!")
    assert sent == [b"head and body", b"!"]
    assert theirs.recv(100) == b"head and body!"


def test_one_response_within_the_end_of_another_comes_behind_it(ends: Any) -> None:
    transport, theirs, _ = ends
    with transport.together():
        transport.write(b"first,")
        with transport.together():
            transport.write(b"second,")
        transport.write(b"third")
    assert theirs.recv(100) == b"first,second,third"


def test_what_is_held_comes_before_the_end(ends: Any) -> None:
    transport, theirs, reactor = ends
    with transport.together():
        transport.write(b"all of it")
        transport.loseConnection()
        transport.write(b" and more")
    while reactor.writers:
        transport.doWrite()
    assert theirs.recv(100) == b"all of it and more"
