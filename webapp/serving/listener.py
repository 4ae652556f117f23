"""The listening socket. The supervisor owns it, so that while the web process is replaced new
connections wait a moment instead of being refused."""

import errno
import socket

from webapp.serving.errors import CannotServe

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Raises CannotServe when the port is taken or the host is not ours."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise CannotServe(_reason(error, host, port)) from None
    return listener


def url_of(host: str, port: int) -> str:
    """What to open in a browser on this machine."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is already in use; set PORT to another one."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this user has; set PORT to one above 1023."
    return f"Cannot listen on {host}, port {port}: {error.strerror or error}."
