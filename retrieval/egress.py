"""Fetching what somebody has given the address of: the one way out, for every URL that a user, a
document or a model can choose.

A name is looked up once; every address that it has is judged (egress_rules.py), and one of these is
connected to, with the name in TLS and `Host`. So a name cannot become another address meanwhile, and
each redirect is judged anew. Nothing is taken from the environment or kept: no proxy, no cookie. What is
said of a server that may not be reached is the same as of one that is not there.
"""

import os
import re
import ssl
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import httpcore2
from django.conf import settings
from django.utils.http import parse_header_parameters
from httpx2 import URL, InvalidURL

from retrieval import egress_network
from retrieval.egress_network import UNREACHABLE, Deadline, Pinned, Unfetchable, trusted
from retrieval.egress_rules import Address, Rules
from retrieval.file_names import safe_name

MAX_REDIRECTS = 5
MAX_URL_CHARS = 8_000
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,49}/[a-z0-9!#$&^_.+-]{1,50}")
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = [("User-Agent", "Vitrine"), ("Accept", "*/*"), ("Accept-Encoding", "identity")]

_BROKEN_OFF = "The server broke off before it had sent everything. Try again."
_ENDINGS = {"text/html": ".html", "application/pdf": ".pdf", "text/plain": ".txt"}


@dataclass(frozen=True, slots=True)
class Fetched:
    """`final_url` is where it was, behind all redirects. `name` is what its server calls it, safe to
    show and to store; `media_type` is what the server says it is, lower-case, and may be empty."""

    final_url: str
    media_type: str
    name: str
    size_bytes: int


def fetch(
    url: str, path: Path, *, max_bytes: int, timeout_s: float, allowed: Rules | None = None
) -> Fetched:
    """Write what an http or https URL serves to `path`, which does not exist. Synchronous.

    `max_bytes` holds for what is written, `timeout_s` for all of it; `allowed` is EGRESS_ALLOW where
    nothing else is given. Raises Unfetchable; then, and after any other error, there is no file.
    """
    rules = settings.EGRESS_ALLOW if allowed is None else allowed
    deadline = Deadline(timeout_s)
    at = _parsed(url)
    for _ in range(MAX_REDIRECTS + 1):
        found = _visit(at, path, max_bytes, deadline, rules)
        if isinstance(found, Fetched):
            return found
        at = found
    raise Unfetchable("too_many_redirects", "The server sends from one address to the next.")


# --- addresses ------------------------------------------------------------------------------------


def _parsed(url: str, base: URL | None = None) -> URL:
    """One parse for all that follows. Raises Unfetchable."""
    try:
        # Where parsers disagree over a URL, one of them can be deceived.
        if len(url) > MAX_URL_CHARS or re.search(r"[\x00-\x20\x7f\\]", url.strip()):
            raise InvalidURL("It is too long, or holds what no URL does.")
        found = base.join(url.strip()) if base else URL(url.strip())
        host = found.raw_host.decode("ascii")
    except (InvalidURL, UnicodeError, ValueError, TypeError):
        raise Unfetchable("invalid_url", "This is no web address.") from None
    if found.scheme not in ("http", "https"):
        message = "A web address begins with http:// or https://."
        raise Unfetchable("invalid_url", message)
    if found.userinfo:
        message = (
            "This address holds a user name or a password. Only what everybody may read is fetched."
        )
        raise Unfetchable("invalid_url", message)
    if not host or "%" in host or not 1 <= _port(found) <= 65535:
        raise Unfetchable("invalid_url", "This is no web address.")
    return found.copy_with(fragment=None)


def _port(url: URL) -> int:
    return url.port if url.port is not None else (443 if url.scheme == "https" else 80)


def _checked(url: URL, rules: Rules, deadline: Deadline) -> list[Address]:
    """All addresses of its host. Raises Unfetchable, unless each of them may be fetched from."""
    host, port = url.raw_host.decode("ascii").lower().removesuffix("."), _port(url)
    if not rules.permit_port(port):
        message = f"Nothing can be fetched by the port {port}; 80 and 443 are the usual ones."
        raise Unfetchable("unreachable", message)
    addresses = egress_network.look_up(url.raw_host.decode("ascii"), port, deadline)
    own = egress_network.own_addresses()
    if not addresses or not all(rules.permit(host, one, port, own) for one in addresses):
        raise Unfetchable("unreachable", UNREACHABLE)
    return addresses


# --- one request ----------------------------------------------------------------------------------


def _visit(url: URL, path: Path, max_bytes: int, deadline: Deadline, rules: Rules) -> Fetched | URL:
    """What is there, or where else it is said to be."""
    backend = Pinned(_checked(url, rules, deadline), deadline)
    target = httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )
    headers = [("Host", url.netloc.decode("ascii")), *_HEADERS]
    try:
        with (
            httpcore2.ConnectionPool(ssl_context=trusted(), network_backend=backend) as pool,
            pool.stream("GET", target, headers=headers) as response,
        ):
            given = _Headers(response.headers)
            if response.status in _REDIRECTS:
                return _parsed(given.get("location"), url)
            _check(response.status)
            size_bytes = _keep(response.iter_stream(), given, path, max_bytes)
    except httpcore2.TimeoutException:
        deadline.left_s()  # where it is over, that is what to say
        raise Unfetchable("timed_out", "The server took too long to send this.") from None
    except httpcore2.ConnectError as error:
        raise _connect_problem(error) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise Unfetchable("broken_off", _BROKEN_OFF) from None
    media_type = _media_type(given)
    return Fetched(str(url), media_type, _name(url, given, media_type), size_bytes)


def _connect_problem(error: Exception) -> Unfetchable:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        message = "The certificate of this server is not valid for its name."
        return Unfetchable("bad_certificate", message)
    return Unfetchable("unreachable", UNREACHABLE)


def _check(status: int) -> None:
    """Raises Unfetchable for what is no page of everybody's."""
    if status == 200:
        return
    if status in (404, 410):
        raise Unfetchable("not_found", "There is nothing at this address (any more).")
    if status in (401, 402, 403, 407, 451):
        message = f"The server shows this only to some, or to no programs; it answered {status}."
        raise Unfetchable("refused", message)
    raise Unfetchable("refused", f"The server did not send this; it answered {status}.")


class _Headers:
    """Of an answer; of each name the first."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in headers:
            self._values.setdefault(_text(name).lower(), _text(value))

    def get(self, name: str) -> str:
        return self._values.get(name, "").strip()


def _text(header: bytes) -> str:
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _keep(parts: Iterator[bytes], headers: _Headers, path: Path, max_bytes: int) -> int:
    length = headers.get("content-length")
    if length.isdecimal() and len(length) < 19 and int(length) > max_bytes:
        raise _too_large(max_bytes)
    try:
        with path.open("xb") as file:
            return _write(_decoded(parts, headers.get("content-encoding")), file, max_bytes)
    except FileExistsError:
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write(parts: Iterator[bytes], file: BinaryIO, max_bytes: int) -> int:
    size_bytes = 0
    for part in parts:
        size_bytes += len(part)
        if size_bytes > max_bytes:
            raise _too_large(max_bytes)
        file.write(part)
    file.flush()
    os.fsync(file.fileno())
    return size_bytes


_PART_BYTES = 2**18  # unpacked at a time, so that no bomb is ever in memory


def _decoded(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """None was asked for, but some always send gzip. Raises Unfetchable for any other."""
    if encoding.lower() in ("", "identity"):
        yield from parts
        return
    if encoding.lower() not in ("gzip", "x-gzip"):
        raise Unfetchable("refused", "The server sent this packed in a way that was not asked for.")
    inflater = zlib.decompressobj(wbits=31)
    try:
        for part in parts:
            while part and not inflater.eof:
                yield inflater.decompress(part, _PART_BYTES)
                part = inflater.unconsumed_tail
            if inflater.eof:
                return  # what stands behind is nothing of ours
        yield inflater.flush()  # no more than what one last code stands for
    except zlib.error:
        raise Unfetchable("broken_off", _BROKEN_OFF) from None
    if not inflater.eof:
        raise Unfetchable("broken_off", _BROKEN_OFF)


def _too_large(max_bytes: int) -> Unfetchable:
    size = f"{max_bytes // 2**20:,} MiB" if max_bytes >= 2**20 else f"{max_bytes:,} bytes"
    return Unfetchable(
        "too_large", f"This is larger than {size}, which is the most that is fetched."
    )


def _media_type(headers: _Headers) -> str:
    found = headers.get("content-type").partition(";")[0].strip().lower()
    return found if _MEDIA_TYPE.fullmatch(found) else ""


def _name(url: URL, headers: _Headers, media_type: str) -> str:
    """What the server calls it; else the end of the path, else the host."""
    if given := safe_name(_given_name(headers.get("content-disposition"))):
        return given
    name = safe_name(unquote(url.path.rstrip("/").rpartition("/")[2])) or safe_name(url.host)
    return name if "." in name and url.path != "/" else name + _ENDINGS.get(media_type, "")


def _given_name(disposition: str) -> str:
    try:
        return str(parse_header_parameters(disposition)[1].get("filename", ""))
    except (ValueError, LookupError):
        return ""  # in an encoding that nobody knows
