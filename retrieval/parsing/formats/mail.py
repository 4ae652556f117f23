"""E-mail: a page for each message, with who wrote it when, and the names of what is attached."""

import re
from collections.abc import Callable, Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from itertools import pairwise

from retrieval.parsing.encodings import decoded
from retrieval.parsing.errors import Unreadable
from retrieval.parsing.formats.plain import add_paragraphs
from retrieval.parsing.limits import Limits
from retrieval.parsing.markup import add_html, parse_html
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, one_line

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_MAX_HEADER_CHARS = 2_000
_MAX_SOURCE_CHARS = 10 * _MAX_HEADER_CHARS  # of a header as it was sent, with its encoding
_MAX_PARTS = 10_000
_FROM_LINE = re.compile(rb"(?:\A|\n\r?\n)From [^\n]*\n(?=[!-9;-~]+:)")


class _Bounded(policy.EmailPolicy):
    """The library reads a hundred thousand addresses for minutes, of which two thousand characters are
    shown. What stands in a header without saying in which encoding, it takes for nothing at all."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        value = value[:_MAX_SOURCE_CHARS]
        if not value.isascii():
            value = _guessed(value.encode("ascii", "surrogateescape"))
        return name, value


def read(source: Source, writer: Writer) -> None:
    for number, data in enumerate(_mailbox(source.data)):
        message = BytesParser(policy=_Bounded()).parsebytes(data)
        assert isinstance(message, EmailMessage)
        writer.title = "" if number else _header(message, "Subject")
        for depth, inner in _messages(message):
            if depth > source.limits.max_depth:
                _note_depth(writer, source.limits)
            else:
                _add(inner, writer)


def _mailbox(data: bytes) -> Iterator[bytes]:
    """Its messages, one after the other; what is no mailbox is one. Each begins with a line "From …",
    behind an empty one and in front of a header: in a message such a line may stand as well."""
    begins = [match.start() for match in _FROM_LINE.finditer(data)]
    if not begins or begins[0] > 0:
        yield data
        return
    for start, end in pairwise([*begins, len(data)]):
        yield data[start:end].lstrip(b"\r\n")


def _messages(message: EmailMessage) -> Iterator[tuple[int, EmailMessage]]:
    """This one and those in it, each before those that it holds."""
    stack = [(1, message)]
    while stack:
        depth, outer = stack.pop()
        yield depth, outer
        inner = [
            part.get_payload(0)
            for part in _parts(outer)
            if part.get_content_type() == "message/rfc822" and part.is_multipart()
        ]
        stack += [(depth + 1, one) for one in reversed(inner) if isinstance(one, EmailMessage)]


def _parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """The parts of a message, without those of messages in it."""
    stack, num_parts = [message], 0
    while stack:
        part = stack.pop()
        if (num_parts := num_parts + 1) > _MAX_PARTS:
            raise Unreadable("too_large", f"The message has over {_MAX_PARTS:,} parts.")
        yield part
        if part.is_multipart() and part.get_content_maintype() == "multipart":
            inner = [one for one in part.get_payload() if isinstance(one, EmailMessage)]
            stack += reversed(inner)


def _add(message: EmailMessage, writer: Writer) -> None:
    writer.page(_header(message, "Subject"))
    lines = ((name, _header(message, name)) for name in _HEADERS)
    writer.add("\n".join(f"{name}: {value}" for name, value in lines if value))
    attached = [_name_of(part) for part in _parts(message) if _is_attached(part)]
    for part in _bodies(message):
        _add_body(part, writer)
    if attached:
        writer.add("Attached: " + ", ".join(attached))


def _bodies(part: EmailMessage) -> list[EmailMessage]:
    """Texts that are read one after the other. Of alternatives, which say the same, the one in plain
    text, unless there is nothing in it: some programs send a blank one beside their HTML."""
    if _is_attached(part):
        return []
    if part.get_content_maintype() == "multipart" and part.is_multipart():
        inner = [_bodies(one) for one in part.get_payload() if isinstance(one, EmailMessage)]
        if part.get_content_type() != "multipart/alternative":
            return [body for bodies in inner for body in bodies]
        return min(filter(None, inner), key=lambda bodies: any(map(_is_html, bodies)), default=[])
    is_text = part.get_content_type() in ("text/plain", "text/html")
    return [part] if is_text and _text_of(part).strip() else []


def _is_attached(part: EmailMessage) -> bool:
    kind = part.get_content_maintype()
    if kind == "multipart":
        return False
    is_named = kind != "text" and bool(_or_nothing(part.get_filename))
    return is_named or part.get_content_disposition() == "attachment"


def _name_of(part: EmailMessage) -> str:
    name = one_line(_or_nothing(part.get_filename) or "")
    return name or f"a file without a name ({part.get_content_type()})"


def _is_html(part: EmailMessage) -> bool:
    return part.get_content_type() == "text/html"


def _add_body(part: EmailMessage, writer: Writer) -> None:
    if _is_html(part):
        root = parse_html(_text_of(part))
        if root is not None:
            add_html(root, writer)
    else:
        add_paragraphs(_text_of(part), writer, new_page=False)


def _text_of(part: EmailMessage) -> str:
    """In the encoding that the part names; where it names none, or one that it does not keep to, in the
    one that the bytes look like."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = (_or_nothing(part.get_content_charset) or "us-ascii").lower()
    if not data.isascii() and charset in ("us-ascii", "ascii"):
        return _guessed(data)
    content = _or_nothing(part.get_content)
    return _guessed(data) if content is None else content  # None: nobody knows the encoding


def _guessed(data: bytes) -> str:
    try:
        return decoded(data)
    except Unreadable:
        return data.decode("latin-1")


def _header(message: EmailMessage, name: str) -> str:
    value = _or_nothing(lambda: str(message.get(name) or ""))
    return one_line(value or "")[:_MAX_HEADER_CHARS]


def _or_nothing(get: Callable[[], object]) -> str | None:
    """What the library's parsers of headers raise for broken ones is any of these."""
    try:
        value = get()
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError):
        return None
    return value if isinstance(value, str) else None


def _note_depth(writer: Writer, limits: Limits) -> None:
    writer.note(f"Messages nested deeper than {limits.max_depth} were left out.")
