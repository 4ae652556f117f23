"""The zips that office files and e-books are, and the XML in them: checked before it is unpacked."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from lxml import etree

from retrieval.parsing.errors import Unreadable, locked
from retrieval.parsing.limits import MIB, Limits
from retrieval.parsing.source import Source

_LOCAL_HEADER_BYTES = 30
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# A document type can name files and addresses, and entities that double and double. Office's formats
# forbid it.
_DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
_XML = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".vml")


@contextmanager
def opened_zip(source: Source, *, may_declare: tuple[str, ...] = ()) -> Iterator[zipfile.ZipFile]:
    """Its members are within the limits, so reading one is safe: zipfile reads no more of a member than
    its index says. `may_declare` are the endings of names that may have a DOCTYPE. Raises Unreadable."""
    try:
        packed = zipfile.ZipFile(source.file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise Unreadable("broken", "The file is damaged: its index cannot be read.") from error
    with packed:
        members = packed.infolist()
        _check_sizes(members, source.limits)
        _check_apart(members)
        for member in members:
            if member.filename.lower().endswith(_XML):
                doctype = member.filename.lower().endswith(may_declare) if may_declare else False
                _check_declarations(packed, member, may_have_doctype=doctype)
        yield packed


def parse_xml(data: bytes) -> etree._Element:
    """Without entities, files or the network. Raises Unreadable."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable("broken", "The file is damaged: a part of it is no XML.") from error


def member(packed: zipfile.ZipFile, name: str) -> bytes:
    """Raises Unreadable if it is missing or damaged."""
    try:
        return packed.read(name)
    except (KeyError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise Unreadable("broken", "The file is damaged: a part of it is missing.") from error


def check_open(members: list[zipfile.ZipInfo]) -> None:
    """Raises Unreadable where a password is asked for."""
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise locked()


def _check_sizes(members: list[zipfile.ZipInfo], limits: Limits) -> None:
    if len(members) > limits.max_members:
        most = limits.max_members
        raise Unreadable("too_large", f"The file is made of over {most:,} parts.")
    if sum(member.file_size for member in members) > limits.max_unpacked_bytes:
        most = limits.max_unpacked_bytes // MIB
        raise Unreadable("too_large", f"The file unpacks to over {most:,} MiB.")
    check_open(members)
    for member in members:
        if member.compress_type not in _METHODS:
            raise Unreadable("broken", "The file is packed in a way that its kind does not know.")
        most = limits.max_ratio * max(member.compress_size, 1)
        if member.file_size > max(MIB, most):
            raise Unreadable("too_large", "The file unpacks to far more than it should.")


def _check_apart(members: list[zipfile.ZipInfo]) -> None:
    """Members that share bytes let a small file unpack to any size, each by an honest ratio."""
    before = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < before:
            raise Unreadable("broken", "The file is damaged: its parts overlap.")
        before = member.header_offset + _LOCAL_HEADER_BYTES + member.compress_size


def _check_declarations(
    packed: zipfile.ZipFile, info: zipfile.ZipInfo, *, may_have_doctype: bool
) -> None:
    forbidden = _DECLARATIONS[1:] if may_have_doctype else _DECLARATIONS
    # A declaration stands before the first element.
    try:
        with packed.open(info) as file:
            head = file.read(65_536)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise Unreadable(
            "broken", "The file is damaged: a part of it cannot be unpacked."
        ) from error
    for word in forbidden:
        if any(word.encode(encoding) in head for encoding in _ENCODINGS):
            message = "The file declares entities, which its kind forbids."
            raise Unreadable("broken", message)
