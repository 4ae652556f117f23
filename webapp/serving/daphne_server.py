"""daphne with what an open port needs: bodies with a limit, back-pressure, an orderly end.

Importing this module installs twisted's reactor on a new event loop.
"""

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import autobahn.twisted.websocket
import autobahn.websocket.protocol
from daphne.http_protocol import WebRequest
from daphne.server import Server, twisted_loop
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import defer, reactor

from chat import arrivals
from webapp.api_errors import error_at, is_api_path
from webapp.serving.prompt_transport import PromptTransport

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 64 * 2**20
MAX_UNSENT_BYTES = 256 * 2**10
MAX_UNHEARD_BYTES = 2 * 2**20  # of one socket: two messages of the largest size
STALLED_AFTER_S = 60.0
_BULK = ("websocket.send", "http.response.body")  # all others are small, and come once
_POLL_S = 0.02
_SHORTEST_PAUSE_S = 0.0005


def _as_it_is(value: Any, **colours: Any) -> Any:
    return value


# autobahn colours what it would log of each frame before it looks whether anybody listens, and prints
# all its settings for each connection.
for _module in (autobahn.twisted.websocket, autobahn.websocket.protocol):
    vars(_module).update(hltype=_as_it_is, hlval=_as_it_is)
vars(autobahn.websocket.protocol).update(pformat=_as_it_is)

_ERRORS = {
    400: ("bad_request", "The request was not understood."),
    500: ("internal_error", "Something went wrong on our side."),
}


class LimitedRequest(WebRequest):  # type: ignore[misc]
    """Ends a connection whose body is too long while it arrives; daphne would store any length.

    What daphne itself refuses, and an application that fails, are told as JSON where programs ask.
    """

    num_received = 0
    refused = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Twisted would read forms as well, and end connections on those that it does not understand.
        self._parsePOSTFormSubmission = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        super().gotLength(length)
        if length is not None and length > MAX_BODY_BYTES:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        self.num_received += len(data)
        if self.num_received > MAX_BODY_BYTES:
            self._refuse()
        if not self.refused:
            super().handleContentChunk(data)

    def process(self) -> Any:
        return None if self.refused else super().process()

    def handle_reply(self, message: dict[str, Any]) -> None:
        """The head of a response goes with the beginning of its body, and what is whole in one piece."""
        transport = None if self.startedWriting else _transport(self)
        if isinstance(transport, PromptTransport):
            with transport.together():
                super().handle_reply(message)
        else:
            super().handle_reply(message)

    def _refuse(self) -> None:
        if self.refused:
            return
        self.refused = True
        # The request gets its own path only once all of it has come.
        path = _decoded(getattr(self.channel, "_path", b"").partition(b"?")[0])
        text = f"The body may hold at most {MAX_BODY_BYTES} bytes."
        body = error_at(path, 413, "content_too_large", text).content
        self.channel.transport.write(
            b"HTTP/1.1 413 Content Too Large\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        )
        self.channel.loseConnection()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """A response that has begun can only be cut off: a reader must not wait for the rest."""
        if self._response_started:
            if (transport := _transport(self)) is not None:
                transport.abortConnection()
            return
        path = _decoded(self.path)
        if status not in _ERRORS or not is_api_path(path):
            super().basic_error(status, status_text, body)
            return
        error = error_at(path, status, *_ERRORS[status])
        headers = [(b"content-type", b"application/json")]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": error.content})


class LimitedSocket(WebSocketProtocol):  # type: ignore[misc]
    """Is not read while its application is far behind, which daphne would store any number of messages
    for: an application that waits for this very reader to read hears nothing meanwhile.
    """

    MESSAGE_BYTES = 256  # what keeping one takes, however short it is

    def onConnect(self, request: Any) -> Any:  # noqa: N802
        self._unheard: deque[int] = deque()  # of messages in the queue: what each takes
        self._num_unheard_bytes = 0
        self._pause: asyncio.Task[None] | None = None  # while nothing is read
        return super().onConnect(request)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        super().onMessage(payload, isBinary)
        self._unheard.append(len(payload) + self.MESSAGE_BYTES)
        self._num_unheard_bytes += self._unheard[-1]
        if self._pause is None and self._is_behind():
            self.transport.pauseProducing()
            self._pause = asyncio.ensure_future(self._read_again())

    def _is_behind(self) -> bool:
        while len(self._unheard) > self.application_queue.qsize():
            self._num_unheard_bytes -= self._unheard.popleft()
        return self._num_unheard_bytes > MAX_UNHEARD_BYTES

    async def _read_again(self) -> None:
        # Polled, because a queue tells nobody that it was taken from.
        while self._is_behind() and self.state != self.STATE_CLOSED:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        self._pause = None
        self.transport.resumeProducing()


def _decoded(path: bytes) -> str:
    return unquote(path.decode("latin1"))


class DaphneServer(Server):  # type: ignore[misc]
    """Serves `application` on a socket that somebody else has bound."""

    def __init__(self, application: Any, listener: socket.socket) -> None:
        super().__init__(
            application,
            endpoints=["ours, below"],
            signal_handlers=False,
            http_timeout=None,  # streams may take as long as they take
            websocket_timeout=-1,
            websocket_max_message_size=2**20,
            websocket_max_frame_size=2**20,
            application_close_timeout=10,
            server_name="",
        )
        self.endpoints: list[str] = []
        self.listener = listener
        self.port: Any = None

    def run_with(self, begin: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        """Serve until stop(); `begin` is called on the loop once connections are accepted."""
        self.ready_callable = lambda: self._adopt(begin)
        self.run()

    def _adopt(self, begin: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        self.listener.setblocking(False)
        self.http_factory.buildProtocol = _limited(self.http_factory.buildProtocol)
        self.ws_factory.protocol = LimitedSocket
        # Say why (1009, a message too big) before the connection goes.
        self.ws_factory.setProtocolOptions(failByDrop=False)
        self.port = reactor.adoptStreamPort(
            self.listener.fileno(), self.listener.family, self.http_factory
        )
        self.port.transport = PromptTransport
        twisted_loop.call_soon(begin, twisted_loop)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Give the message to the connection, and wait while its reader is far behind.

        Without the wait an application that writes faster than its reader reads fills our memory. It is
        before the message as well: who cancels what waits behind one, and sends another, would pass it.
        """
        if message["type"] in _BULK:
            await _until_read(protocol)
        await super().handle_reply(protocol, message)
        await _until_read(protocol)

    def close_sockets(self, code: int) -> None:
        """Tell every WebSocket to come back: 1012 is "service restart"."""
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocketProtocol) and protocol.state == protocol.STATE_OPEN:
                protocol.sendCloseFrame(code=code, isReply=False)

    async def finish_responses(self, timeout_s: float) -> None:
        """Take no new connections, and let running responses end."""
        self.port.stopListening()
        deadline = time.monotonic() + timeout_s
        # Polled, because daphne tells nobody of an end.
        while self._num_busy() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)

    def _num_busy(self) -> int:
        return sum("disconnected" not in details for details in self.connections.values())

    def kill_all_applications(self) -> Any:
        """Cancel what still runs; the stock method fails on connections without an application."""
        running = [
            details["application_instance"]
            for details in self.connections.values()
            if "application_instance" in details and not details["application_instance"].done()
        ]
        for application in running:
            application.cancel()
        return defer.Deferred.fromFuture(
            asyncio.gather(*running, asyncio.sleep(0), return_exceptions=True)
        )


async def _until_read(protocol: Any) -> None:
    """Wait while the reader is far behind; one who does not read at all is hung up on."""
    since_s, least, pause_s = time.monotonic(), _num_unsent(protocol), _SHORTEST_PAUSE_S
    while (unsent := _num_unsent(protocol)) > MAX_UNSENT_BYTES:
        if unsent < least:
            since_s, least = time.monotonic(), unsent
        if time.monotonic() - since_s > STALLED_AFTER_S:
            logger.info("a connection that does not read was ended")
            _transport(protocol).abortConnection()
            return
        await asyncio.sleep(pause_s)
        pause_s = min(_POLL_S, pause_s * 2)


def _limited(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def build_limited(address: Any) -> Any:
        protocol = build(address)
        protocol.requestFactory = LimitedRequest
        _expect(protocol)
        return protocol

    return build_limited


def _expect(protocol: Any) -> None:
    """Its first words, or that it leaves."""
    key = id(protocol)
    receive, lose = protocol.dataReceived, protocol.connectionLost

    def no_more() -> None:
        arrivals.spoke(key)
        del protocol.dataReceived, protocol.connectionLost

    def data_received(data: bytes) -> None:
        no_more()
        receive(data)

    def connection_lost(reason: Any) -> None:
        no_more()
        lose(reason)

    protocol.dataReceived, protocol.connectionLost = data_received, connection_lost
    arrivals.connected(key)


def _transport(protocol: Any) -> Any:
    channel = getattr(protocol, "channel", None)
    return channel.transport if channel is not None else getattr(protocol, "transport", None)


def _num_unsent(protocol: Any) -> int:
    """Bytes in our memory that the kernel has not taken; 0 for a connection that has ended."""
    transport = _transport(protocol)
    if transport is None or getattr(transport, "disconnected", True):
        return 0
    return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)
