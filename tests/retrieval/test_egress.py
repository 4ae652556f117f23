"""Fetching by address, from a real server, with every way round the rules that we know of."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrieval import egress, egress_network
from retrieval.egress import Fetched, fetch
from retrieval.egress_network import UNREACHABLE, Unfetchable
from retrieval.egress_rules import Rules, parse_rules
from tests.retrieval.web_server import (
    Answer,
    Resolver,
    WebServer,
    certificate,
    ok,
    redirect,
    web_server,
)

Serve = Callable[[Answer], WebServer]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    fake = Resolver({"files.example": [["127.0.0.1"]]})
    monkeypatch.setattr(socket, "getaddrinfo", fake)
    return fake


@pytest.fixture
def serve(resolver: Resolver) -> Iterator[Serve]:
    started: list[WebServer] = []

    def start(answer: Answer) -> WebServer:
        started.append(WebServer(answer, None))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "fetched"


def permitted(server: WebServer) -> Rules:
    return parse_rules([f"files.example:{server.port}"])


def get(
    server: WebServer,
    target: Path,
    path: str = "/",
    *,
    max_bytes: int = 10_000,
    timeout_s: float = 5,
) -> Fetched:
    url = f"http://files.example:{server.port}{path}"
    rules = permitted(server)
    return fetch(url, target, max_bytes=max_bytes, timeout_s=timeout_s, allowed=rules)


def refusal(
    url: str, target: Path, rules: Rules | None = None, timeout_s: float = 5
) -> Unfetchable:
    with pytest.raises(Unfetchable) as caught:
        fetch(url, target, max_bytes=10_000, timeout_s=timeout_s, allowed=rules or Rules())
    assert not target.exists()
    assert caught.value.message.endswith(".")
    return caught.value


def test_a_file_is_fetched(serve: Serve, target: Path) -> None:
    server = serve(
        lambda _: ok(b"Hello", "Content-Type: Text/HTML; charset=utf-8", "Set-Cookie: a=b")
    )
    found = get(server, target, "/docs/the%20page.html?x=1#part")
    assert target.read_bytes() == b"Hello"
    url = f"http://files.example:{server.port}/docs/the%20page.html?x=1"
    assert found == Fetched(url, "text/html", "the page.html", 5)
    head = server.requests[0]
    assert head.startswith("GET /docs/the%20page.html?x=1 HTTP/1.1\r\n")
    assert f"Host: files.example:{server.port}\r\n" in head
    assert "ookie" not in head
    assert "uthorization" not in head


def test_settings_say_what_is_permitted(serve: Serve, target: Path, settings: object) -> None:
    server = serve(lambda _: ok(b"Hello"))
    url = f"http://files.example:{server.port}/"
    with pytest.raises(Unfetchable):
        fetch(url, target, max_bytes=100, timeout_s=5)
    settings.EGRESS_ALLOW = permitted(server)  # type: ignore[attr-defined]
    assert fetch(url, target, max_bytes=100, timeout_s=5).size_bytes == 5


def test_a_file_that_is_there_is_kept(serve: Serve, target: Path) -> None:
    target.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        get(serve(lambda _: ok(b"Hello")), target)
    assert target.read_bytes() == b"mine"


# --- where to ---------------------------------------------------------------------------------------


@pytest.fixture
def inside(serve: Serve) -> WebServer:
    """A service that nobody from outside may see a connection of."""
    return serve(lambda _: ok(b"secret"))


FORMS = (
    "127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0x7F.0x0.0x0.0x1 017700000001 "
    "0177.0.0.1 0177.1 127.000.000.001 0 0.0.0.0 localhost LOCALHOST localhost. 127.0.0.1. "
    "127。0。0。1 127．0．0．1 １２７.0.0.1 ①②⑦.0.0.1 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] "
    "[::ffff:7f00:1] [::ffff:0x7f.1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [::1%25lo] "
    "[::1%lo] [fe80::1%25lo] 127.0.0.1%2f 127.0.0.1%00 %6c%6f%63%61%6c%68%6f%73%74 lo%63alhost "
    "10.0.0.1 192.168.0.1 169.254.169.254 metadata.google.internal "
)


@pytest.mark.parametrize("host", FORMS.split())
def test_no_form_of_an_inner_address_is_connected_to(
    host: str, inside: WebServer, target: Path
) -> None:
    # Its port is permitted, of another host: only the address keeps it apart.
    rules = parse_rules([f"other.example:{inside.port}"])
    error = refusal(f"http://{host}:{inside.port}/", target, rules)
    assert error.code in ("unreachable", "invalid_url")
    if error.code == "unreachable":
        assert error.message == UNREACHABLE
    assert inside.num_connections == 0


URLS = (
    r"http://files.example\@127.0.0.1/ http://files.example@127.0.0.1/ "
    r"http://user:pass@files.example/ http://files.example%20@127.0.0.1/ "
    r"http://files.example:80@127.0.0.1/ http:\\127.0.0.1\ http:/127.0.0.1/ http:///127.0.0.1/ "
    r"//127.0.0.1/ 127.0.0.1 file:///etc/passwd ftp://files.example/ "
    r"gopher://127.0.0.1:6379/_FLUSHALL javascript:alert(1) data:text/html,hello "
    r"dict://127.0.0.1:11211/ http://127.0.0.1:0/ http://files.example:65536/ "
    r"http://files.example:-80/ http://files.example:8o/ http://[files.example]/ http:// http "
    r"https:// http://files.example:80:80/ ws://files.example/ "
)
ODD = ("", "http://files.exa\nmple/", "http://files.example/\r\nX: y", "http://fi les.example/")
ODDER = ("http://x/\x00", f"http://{'a' * 9000}/", "http://\ud800.example/", "http://\udcff/")


@pytest.mark.parametrize("url", [*URLS.split(), *ODD, *ODDER])
def test_what_is_no_web_address(
    url: str, inside: WebServer, resolver: Resolver, target: Path
) -> None:
    assert refusal(url, target, parse_rules(["127.0.0.0/8"])).code in ("invalid_url", "unreachable")
    assert inside.num_connections == 0


@pytest.mark.parametrize("port", [21, 22, 25, 3306, 5432, 6379, 8080, 11211])
def test_other_ports_are_closed(port: int, resolver: Resolver, target: Path) -> None:
    resolver.names["public.example"] = [["8.8.8.8"]]
    error = refusal(f"http://public.example:{port}/", target)
    assert (error.code, str(port) in error.message) == ("unreachable", True)
    assert resolver.asked == []


def test_one_private_address_among_public_ones_is_enough(
    inside: WebServer, resolver: Resolver, target: Path
) -> None:
    resolver.names["mixed.example"] = [["8.8.8.8", "2606:4700::1111", "127.0.0.1"]]
    assert refusal("http://mixed.example/", target).message == UNREACHABLE
    resolver.names["mixed.example"] = [["::ffff:10.0.0.1"]]
    assert refusal("http://mixed.example/", target).message == UNREACHABLE


def test_a_name_cannot_become_another_address_meanwhile(
    inside: WebServer, resolver: Resolver, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: first a public address, then ours. The public one, and no other, is connected to."""
    resolver.names["rebound.example"] = [["8.8.8.8"], ["127.0.0.1"]]
    connected: list[object] = []

    def connect(address: object, *args: object, **kwargs: object) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    assert refusal("http://rebound.example/", target).message == UNREACHABLE
    assert connected == [("8.8.8.8", 80)]
    assert resolver.asked == ["rebound.example"]


def test_the_next_address_is_tried_where_one_is_silent(
    serve: Serve, resolver: Resolver, target: Path
) -> None:
    server = serve(lambda _: ok(b"Hello"))
    resolver.names["files.example"] = [["127.0.0.2", "127.0.0.1"]]  # nobody listens at the first
    assert get(server, target).size_bytes == 5


def test_nobody_learns_what_is_inside(inside: WebServer, resolver: Resolver, target: Path) -> None:
    """An open port, a closed one, a name that is unknown, one that is known: the same words."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed_port = unused.getsockname()[1]
    resolver.names |= {"known.internal": [["10.1.1.1"]], "unknown.internal": [[]]}
    rules = parse_rules([f"other.example:{inside.port}", f"other.example:{closed_port}"])
    urls = [
        f"http://127.0.0.1:{inside.port}/",
        f"http://127.0.0.1:{closed_port}/",
        "http://known.internal/",
        "http://unknown.internal/",
    ]
    assert {str(refusal(url, target, rules)) for url in urls} == {UNREACHABLE}
    closed = f"files.example:{closed_port}"
    assert str(refusal(f"http://{closed}/", target, parse_rules([closed]))) == UNREACHABLE


def test_a_resolver_that_does_not_answer_takes_no_longer_than_all(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(3) or [])
    began_s = time.monotonic()
    assert refusal("http://slow.example/", target, timeout_s=0.3).code == "unreachable"
    assert time.monotonic() - began_s < 2


# --- redirects --------------------------------------------------------------------------------------


def test_redirects_are_followed_and_the_last_address_is_told(serve: Serve, target: Path) -> None:
    pages = {"/a": redirect("/b?x=ü"), "/b?x=%C3%BC": redirect("c#d", 308), "/c": ok(b"there")}
    server = serve(lambda path: pages[path])
    assert get(server, target, "/a").final_url == f"http://files.example:{server.port}/c"


@pytest.mark.parametrize("times", [5, 6])
def test_five_redirects_are_enough(times: int, serve: Serve, target: Path) -> None:
    def answer(path: str) -> list[bytes]:
        return redirect(f"/{int(path[1:]) + 1}") if int(path[1:]) < times else ok(b"there")

    server = serve(answer)
    if times == 5:
        assert get(server, target, "/0").size_bytes == 5
    else:
        url = f"http://files.example:{server.port}/0"
        assert refusal(url, target, permitted(server)).code == "too_many_redirects"


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{}/",
        "http://localhost:{}/",
        "//127.0.0.1:{}/",
        "http://[::ffff:127.0.0.1]:{}/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "http://user:pass@files.example:{}/",
        "gopher://127.0.0.1:{}/",
        "http://public.example@127.0.0.1:{}/",
        "http:\\\\127.0.0.1:{}\\",
        "",
        "http://",
    ],
)
def test_a_redirect_inside_is_refused(
    to: str, inside: WebServer, serve: Serve, target: Path
) -> None:
    server = serve(lambda _: redirect(to.format(inside.port)))
    url = f"http://files.example:{server.port}/"
    rules = parse_rules([f"files.example:{server.port}", f"other.example:{inside.port}"])
    error = refusal(url, target, rules)
    assert error.code in ("unreachable", "invalid_url", "too_many_redirects")
    assert inside.num_connections == 0


def test_a_name_is_looked_up_anew_for_each_redirect(
    serve: Serve, resolver: Resolver, target: Path
) -> None:
    server = serve(lambda path: redirect("/b") if path == "/a" else ok(b"secret"))
    resolver.names["files.example"] = [["127.0.0.1"], ["169.254.169.254"]]
    url = f"http://files.example:{server.port}/a"
    assert refusal(url, target, permitted(server)).message == UNREACHABLE


# --- how much, and how long -------------------------------------------------------------------------


def test_what_says_that_it_is_too_large_is_not_read(serve: Serve, target: Path) -> None:
    server = serve(lambda _: ok(b"x", length=10_001))
    assert (
        refusal(f"http://files.example:{server.port}/", target, permitted(server)).code
        == "too_large"
    )


def endless(_: str, piece: bytes = b"x" * 4096, head: str = "") -> Iterator[bytes]:
    yield f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{head}\r\n".encode()
    while True:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


def bomb(_: str) -> list[bytes]:
    return ok(gzip.compress(bytes(200 * 2**20), 9), "Content-Encoding: gzip")


def drip(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    while True:
        time.sleep(0.05)
        yield b"x"


def drip_of_headers(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        time.sleep(0.05)
        yield b"X: y\r\n"


def silence(_: str) -> Iterator[bytes]:
    time.sleep(3)
    yield b""


def huge_header(_: str) -> list[bytes]:
    return ok(b"Hello", "X: " + "y" * 2**20)


def many_headers(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X: y\r\n" * 1000


def endless_hints(_: str) -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 103 Early Hints\r\n\r\n"


BAD = {
    "endless": (endless, "too_large"),
    "bomb": (bomb, "too_large"),
    "drip": (drip, "timed_out"),
    "drip of headers": (drip_of_headers, "timed_out"),
    "silence": (silence, "timed_out"),
    "huge header": (huge_header, "broken_off"),
    "many headers": (many_headers, "broken_off"),
    "endless hints": (endless_hints, "timed_out"),
    "cut": (lambda _: ok(b"Hello", length=900), "broken_off"),
    "cut gzip": (
        lambda _: ok(gzip.compress(b"Hello" * 99)[:-9], "Content-Encoding: gzip"),
        "broken_off",
    ),
    "no gzip": (lambda _: ok(b"Hello", "Content-Encoding: gzip"), "broken_off"),
    "brotli": (lambda _: ok(b"Hello", "Content-Encoding: br"), "refused"),
    "twice packed": (lambda _: ok(b"Hello", "Content-Encoding: gzip, gzip"), "refused"),
    "no HTTP": (lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n"], "broken_off"),
    "nothing": (lambda _: [], "broken_off"),
    "upgrade": (lambda _: [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"], "broken_off"),
    "two lengths": (lambda _: ok(b"Hello", "Content-Length: 4"), "broken_off"),
    "404": (lambda _: [b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"], "not_found"),
    "401": (lambda _: [b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"], "refused"),
    "500": (lambda _: [b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"], "refused"),
    "206": (lambda _: [b"HTTP/1.1 206 Some\r\nContent-Length: 0\r\n\r\n"], "refused"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_server_costs_little_and_leaves_nothing(
    name: str, serve: Serve, target: Path
) -> None:
    answer, code = BAD[name]
    server = serve(answer)  # type: ignore[arg-type]
    url = f"http://files.example:{server.port}/"
    timeout_s = 1 if code == "timed_out" else 30
    assert refusal(url, target, permitted(server), timeout_s=timeout_s).code == code
    assert server.num_connections == 1


def test_gzip_is_unpacked(serve: Serve, target: Path) -> None:
    text = bytes(range(256)) * 3000
    packed = gzip.compress(text)
    server = serve(lambda _: ok(packed + b"rest", "Content-Encoding: gzip"))
    assert get(server, target, max_bytes=len(text)).size_bytes == len(text)
    assert target.read_bytes() == text


def test_as_much_as_may_be_is_kept(serve: Serve, target: Path) -> None:
    assert get(serve(lambda _: ok(b"x" * 10_000)), target).size_bytes == 10_000


def test_chunks_and_an_end_without_length_are_read(serve: Serve, target: Path) -> None:
    server = serve(lambda _: [b"HTTP/1.0 200 OK\r\n\r\n", b"Hello"])
    assert get(server, target).size_bytes == 5
    target.unlink()
    chunked = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\n\r\n"]
    assert get(serve(lambda _: chunked), target).size_bytes == 5


# --- what it is called ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="report.pdf"', "report.pdf"),
        ("attachment; filename*=UTF-8''%C3%9Cbersicht.pdf", "Übersicht.pdf"),
        ('attachment; filename="Übersicht.pdf"', "Übersicht.pdf"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="..\\\\..\\\\boot.ini"', "boot.ini"),
        ("attachment; filename*=UTF-8''..%2F..%2Fa.txt", "a.txt"),
        ("attachment; filename*=UTF-8''a%00b%0d%0a.txt", "ab.txt"),
        ("attachment; filename*=UTF-8''fdp%E2%80%AE.exe", "fdp.exe"),
        ('attachment; filename=".bashrc"', "bashrc"),
        ('attachment; filename="نامه‌ها.pdf"', "نامه‌ها.pdf"),
        ('attachment; filename=".."', "page.html"),
        ("attachment; filename*=nonsense''x", "page.html"),
        ('attachment; filename=""', "page.html"),
        ("attachment", "page.html"),
        ('attachment; filename="' + "x" * 500 + '.pdf"', "x" * 251 + ".pdf"),
    ],
)
def test_names_of_servers_are_safe(disposition: str, name: str, serve: Serve, target: Path) -> None:
    answer = ok(b"Hello", "Content-Disposition: " + disposition.encode().decode("latin-1"))
    assert get(serve(lambda _: answer), target, "/docs/page.html").name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "files.example.html"),
        ("/a/b", "b.html"),
        ("/a/b/", "b.html"),
        ("/a.pdf?x=/c.txt", "a.pdf"),
        ("/%2e%2e%2fpasswd", "passwd.html"),
        ("/a%5cb.txt", "b.txt"),
    ],
)
def test_else_the_address_names_it(path: str, name: str, serve: Serve, target: Path) -> None:
    server = serve(lambda _: ok(b"Hello", "Content-Type: text/html"))
    assert get(server, target, path).name == name


@pytest.mark.parametrize("kind", ["<script>", "a/b/c", "text", "x" * 60 + "/y", "text/ht ml", ""])
def test_a_media_type_is_one_or_is_empty(kind: str, serve: Serve, target: Path) -> None:
    assert get(serve(lambda _: ok(b"Hello", f"Content-Type: {kind}")), target).media_type == ""


# --- HTTPS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["files.example", "other.example"])
def test_a_certificate_has_to_be_of_the_name(
    name: str, resolver: Resolver, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, trusting = certificate(tmp_path, name)
    monkeypatch.setattr(egress, "trusted", lambda: trusting)
    with web_server(lambda _: ok(b"Hello"), serving) as server:
        for host in ("files.example", "files.example."):
            resolver.names[host] = [["127.0.0.1"]]
            url = f"https://{host}:{server.port}/"
            if name == "files.example":
                fetch(url, target, max_bytes=100, timeout_s=5, allowed=permitted(server))
                target.unlink()
            else:
                error = refusal(url, target, permitted(server))
                assert error.code == "bad_certificate"
                assert server.requests == []


def test_an_unknown_authority_is_not_believed(
    resolver: Resolver, target: Path, tmp_path: Path
) -> None:
    serving, _ = certificate(tmp_path, "files.example")
    with web_server(lambda _: ok(b"Hello"), serving) as server:
        error = refusal(f"https://files.example:{server.port}/", target, permitted(server))
        assert error.code == "bad_certificate"


def test_what_speaks_no_tls_is_not_there(resolver: Resolver, target: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.sendall(b"HTTP/1.1 400 No\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        error = refusal(
            f"https://files.example:{port}/", target, parse_rules([f"files.example:{port}"])
        )
    assert error.message == UNREACHABLE


def test_the_environment_has_no_say(
    serve: Serve, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, proxy = serve(lambda _: ok(b"Hello")), serve(lambda _: ok(b"proxy"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    get(server, target)
    assert proxy.num_connections == 0


def test_trust_is_that_of_the_system() -> None:
    context = egress_network.trusted()
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"
