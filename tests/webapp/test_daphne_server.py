"""daphne with limits: long bodies, readers that do not read, the end of streams."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import connect

from tests.sites import ROOT, wait_until

SERVER = """
import asyncio, signal, socket, sys
from chat import arrivals
arrivals.PATIENCE_S = 600
from webapp.serving.daphne_server import MAX_BODY_BYTES, DaphneServer

async def anew(receive, send):
    # For each message a large one, in place of the one before: that is not waited for any more.
    sending = None
    while (await receive())["type"] == "websocket.receive":
        if sending:
            sending.cancel()
        told = send({"type": "websocket.send", "text": "x" * 500_000})
        sending = asyncio.create_task(told)

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/expected":
            await send({"type": "websocket.send", "text": str(arrivals.are_expected())})
        if scope["path"] == "/anew":
            return await anew(receive, send)
        if scope["path"] == "/deaf":
            await asyncio.sleep(float(scope["query_string"]))
            for _ in range(60):
                await receive()
            return await send({"type": "websocket.close"})
        for number in range(int(scope["query_string"] or 0)):
            text = str(number) * (100_000 if number % 10 == 0 else 1)
            await send({"type": "websocket.send", "text": text})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    if scope["path"].startswith("/mib/"):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(int(scope["path"][5:])):
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"].startswith("/fail/begun"):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    if "/fail" in scope["path"]:
        raise RuntimeError("failed")
    num_bytes = 0
    while True:
        message = await receive()
        num_bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(num_bytes).encode()})

listener = socket.create_server(("127.0.0.1", 0))
server = DaphneServer(application, listener)

async def end():
    server.close_sockets(1012)
    await server.finish_responses(3)
    server.stop()

def begin(loop):
    loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(end()))
    print(listener.getsockname()[1], flush=True)

server.run_with(begin)
"""


class Server:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGTERM)
    try:
        assert running.process.wait(15) in (0, -signal.SIGTERM)
    finally:
        running.process.kill()
        assert running.process.stdout is not None
        running.process.stdout.close()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass  # the rest of what we sent was not read
    return received


def test_a_body_is_handed_over_whole_and_nobody_says_who_serves(server: Server) -> None:
    with server.connect() as connection:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n"
        connection.sendall(head + b"a" * 300000)
        answer = read_all(connection)
    assert answer.endswith(b"\r\n300000\r\n0\r\n\r\n")
    assert b"daphne" not in answer.lower()


def test_who_connects_is_expected_to_speak(server: Server) -> None:
    address = f"ws://127.0.0.1:{server.port}/expected"

    def is_somebody() -> bool:
        with connect(address) as asking:
            asking.send("?")
            return asking.recv() == "True"

    assert not is_somebody()
    with server.connect() as silent:
        assert is_somebody()
        silent.sendall(b"GET / HTTP/1.1\r\n")
        wait_until(lambda: not is_somebody())
    server.connect().close()  # gone without a word
    wait_until(lambda: not is_somebody())


def test_a_body_announced_as_too_long_is_refused_before_it_comes(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        answer = read_all(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(body)["error"]["code"] == "content_too_large"


@pytest.mark.parametrize(
    ("path", "is_anthropic"),
    [
        (b"/v1/messages?beta=true", True),
        (b"/v1/messages/count_tokens", True),
        (b"/v1/files", False),
    ],
)
def test_it_is_refused_as_the_clients_of_the_address_read_errors(
    server: Server, path: bytes, is_anthropic: bool
) -> None:
    with server.connect() as connection:
        head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
        connection.sendall(head % path)
        answer = read_all(connection)
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (told.get("type") == "error") is is_anthropic
    assert told["error"]["code"] == "content_too_large"


def test_an_application_that_fails_in_its_answer_keeps_nobody_waiting(server: Server) -> None:
    with server.connect() as connection:
        connection.settimeout(8)
        connection.sendall(b"GET /fail/begun HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = read_all(connection)
    assert b"begun" in answer
    assert not answer.endswith(b"0\r\n\r\n"), "it does not look whole"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"/v1/fail", "server_error"),
        (b"/api/fail", "server_error"),
        (b"/v1/messages/fail", "api_error"),
    ],
)
def test_an_application_that_fails_before_is_told_as_json(
    server: Server, path: bytes, kind: str
) -> None:
    with server.connect() as connection:
        connection.settimeout(8)
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path)
        answer = read_all(connection)
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    error = json.loads(rest[rest.index(b"{") : rest.rindex(b"}") + 1])["error"]
    assert (error["type"], error["code"]) == (kind, "internal_error")


def test_a_malformed_form_reaches_the_application(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\nabc"
        )
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_an_endless_body_is_ended_early(server: Server) -> None:
    chunk = b"100000\r\n" + b"a" * 2**20 + b"\r\n"
    num_sent = 0
    with server.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(200):
                connection.sendall(chunk)
                num_sent += 1
        except OSError:
            pass
    assert 60 <= num_sent < 90


def test_a_reader_that_does_not_read_costs_no_memory_and_can_go_on(server: Server) -> None:
    before = server.rss_bytes()
    with server.connect() as connection:
        connection.sendall(b"GET /mib/200 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        time.sleep(1.5)
        assert server.rss_bytes() - before < 32 * 2**20
        num_received = 0
        while piece := connection.recv(2**20):
            num_received += len(piece)
    assert num_received > 200 * 2**20


def test_one_who_asks_anew_and_never_reads_costs_no_memory(server: Server) -> None:
    """Who follows a run again leaves what was on its way to them, and may do so many times a second."""
    before = server.rss_bytes()
    url = f"ws://127.0.0.1:{server.port}/anew"
    with connect(url, max_queue=1, compression=None, close_timeout=0) as client:
        for _ in range(400):
            client.send("again")
            time.sleep(0.005)
        assert server.rss_bytes() - before < 32 * 2**20


def test_one_who_is_not_heard_costs_no_memory_and_loses_nothing(server: Server) -> None:
    """An application waits, for a reader that does not read or for the database."""
    before = server.rss_bytes()
    url = f"ws://127.0.0.1:{server.port}/deaf?3"
    most = 0
    with connect(url, compression=None, close_timeout=5) as client:
        saying = threading.Thread(target=lambda: [client.send("x" * 900_000) for _ in range(60)])
        saying.start()
        while saying.is_alive():
            most = max(most, server.rss_bytes())
            time.sleep(0.05)
        with pytest.raises(ConnectionClosedOK):  # once all have been heard
            client.recv(timeout=10)
    assert most - before < 24 * 2**20


def test_a_response_that_runs_when_the_end_comes_is_finished(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /mib/50 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        first = connection.recv(2**20)
        server.process.send_signal(signal.SIGTERM)
        num_received = len(first)
        while piece := connection.recv(2**20):
            num_received += len(piece)
    assert num_received > 50 * 2**20


def test_frames_come_whole_and_in_their_order_however_slowly_they_are_read(server: Server) -> None:
    """Small ones behind large ones, of which the kernel takes a part."""
    with connect(f"ws://127.0.0.1:{server.port}/?300", max_queue=1, compression=None) as client:
        time.sleep(0.5)
        for number in range(300):
            assert client.recv(timeout=20) == str(number) * (100_000 if number % 10 == 0 else 1)


def test_what_is_sent_to_one_who_has_left_ends_the_connection(server: Server) -> None:
    client = connect(f"ws://127.0.0.1:{server.port}/?1000", max_queue=1, compression=None)
    client.socket.close()
    with server.connect() as other:
        other.sendall(b"GET /mib/1 HTTP/1.0\r\n\r\n")
        assert other.recv(100)
