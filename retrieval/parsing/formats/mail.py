"""E-mail: a page for each message, with who wrote it when, and the names of what is attached."""

from collections.abc import Callable, Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

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


class _Bounded(policy.EmailPolicy):
    """The library reads a hundred thousand addresses for minutes, of which two thousand characters are
    shown."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_SOURCE_CHARS]


def read(source: Source, writer: Writer) -> None:
    message = BytesParser(policy=_Bounded()).parsebytes(source.data)
    assert isinstance(message, EmailMessage)
    writer.title = _header(message, "Subject")
    for depth, inner in _messages(message):
        if depth > source.limits.max_depth:
            _note_depth(writer, source.limits)
        else:
            _add(inner, writer)


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
    plain, html, attached = _sorted_parts(message)
    for part in plain or html:
        _add_body(part, writer)
    if attached:
        writer.add("Attached: " + ", ".join(attached))


def _sorted_parts(
    message: EmailMessage,
) -> tuple[list[EmailMessage], list[EmailMessage], list[str]]:
    """Bodies as plain text and as HTML, which say the same, and the names of the rest."""
    plain, html, attached = [], [], []
    for part in _parts(message):
        kind = part.get_content_type()
        name = one_line(_or_nothing(part.get_filename) or "")
        if part.get_content_disposition() == "attachment" or (
            name and not kind.startswith("text/")
        ):
            attached.append(name or f"a file without a name ({kind})")
        elif kind == "text/plain":
            plain.append(part)
        elif kind == "text/html":
            html.append(part)
    return plain, html, attached


def _add_body(part: EmailMessage, writer: Writer) -> None:
    content = _or_nothing(part.get_content)
    if content is None:  # of an encoding that nobody knows
        payload = part.get_payload(decode=True)
        content = payload.decode("latin-1") if isinstance(payload, bytes) else ""
    if part.get_content_type() == "text/html":
        root = parse_html(content)
        if root is not None:
            add_html(root, writer)
    else:
        add_paragraphs(content, writer, new_page=False)


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
