"""A server on this machine that answers with the very bytes of a test, and a resolver that lies."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Answer = Callable[[str], Iterable[bytes]]
"""From the path that is asked for to what is sent, piece by piece."""


class WebServer:
    """`requests` are the heads of those that came."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None) -> None:
        self._answer = answer
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.requests: list[str] = []
        self.num_connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self.num_connections += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        try:
            if self._context:
                client = self._context.wrap_socket(client, server_side=True)
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (data := client.recv(65536)):
                        return
                    head += data
                self.requests.append(head.decode())
                for piece in self._answer(head.split()[1].decode()):
                    client.sendall(piece)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


@contextmanager
def web_server(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    server = WebServer(answer, context)
    try:
        yield server
    finally:
        server.close()


def ok(body: bytes, *headers: str, length: int | None = None) -> list[bytes]:
    size = len(body) if length is None else length
    head = ["HTTP/1.1 200 OK", f"Content-Length: {size}", *headers]
    return [("\r\n".join(head) + "\r\n\r\n").encode("latin-1"), body]


def redirect(to: str, status: int = 302) -> list[bytes]:
    return [f"HTTP/1.1 {status} Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()]


class Resolver:
    """In place of socket.getaddrinfo: names of `names` have these addresses, one list at each look-up;
    the last one stays. `asked` are the names that were looked up and are no addresses."""

    def __init__(self, names: dict[str, list[list[str]]]) -> None:
        self.names = names
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: str, port: int, *args: object, **kwargs: object) -> list[object]:
        if host not in self.names:
            if host.strip("0123456789abcdefx.:"):
                self.asked.append(host)
            return list(self._real(host, port, *args, **kwargs))  # type: ignore[arg-type]
        self.asked.append(host)
        answers = self.names[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (one, port),
            )
            for one in addresses
        ]


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for this name, and a client's that trusts nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    trusting = ssl.create_default_context(
        cadata=made.public_bytes(serialization.Encoding.PEM).decode()
    )
    return serving, trusting
