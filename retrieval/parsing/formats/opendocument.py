"""ODT: headings, paragraphs, lists and tables, from the XML itself."""

from collections.abc import Iterator
from typing import Any

from retrieval.parsing.errors import locked
from retrieval.parsing.packed import member, opened_zip, parse_xml
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, one_line, table

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_LEFT_OUT = {f"{_OFFICE}annotation", f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls"}
_MAX_REPEATED = 100
_MANIFEST = "META-INF/manifest.xml"


def read(source: Source, writer: Writer) -> None:
    with opened_zip(source) as packed:
        if _MANIFEST in packed.namelist() and b"encryption-data" in member(packed, _MANIFEST):
            raise locked()  # the text is there, as bytes that only the password reads
        if "meta.xml" in packed.namelist():
            meta = parse_xml(member(packed, "meta.xml"))
            writer.title = meta.findtext(f".//{_DC}title") or ""
            writer.language = meta.findtext(f".//{_DC}language") or ""
        content = parse_xml(member(packed, "content.xml"))
    writer.page()
    body = content.find(f".//{_OFFICE}text")
    for element in _outermost(body if body is not None else content):
        _add(element, writer)


def _outermost(root: Any) -> Iterator[Any]:
    stack = list(reversed(root))
    while stack:
        element = stack.pop()
        if element.tag in (f"{_TEXT}h", f"{_TEXT}p", f"{_TEXT}list", f"{_TABLE}table"):
            yield element
        elif element.tag not in _LEFT_OUT:
            stack += reversed(element)


def _add(element: Any, writer: Writer) -> None:
    if element.tag == f"{_TEXT}h":
        level = element.get(f"{_TEXT}outline-level") or "1"
        writer.add(
            one_line(_text(element)), "heading", min(6, int(level)) if level.isdecimal() else 1
        )
    elif element.tag == f"{_TEXT}list":
        writer.add("\n".join(_items(element)), "list")
    elif element.tag == f"{_TABLE}table":
        writer.add(table(list(_rows(element))), "table")
    else:
        writer.add(_text(element))


def _items(listing: Any) -> Iterator[str]:
    for paragraph in listing.iter(f"{_TEXT}p", f"{_TEXT}h"):
        depth = sum(1 for _ in paragraph.iterancestors(f"{_TEXT}list"))
        if text := one_line(_text(paragraph)):
            yield "  " * min(depth - 1, 8) + "- " + text


def _rows(element: Any) -> Iterator[list[str]]:
    for row in element.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iter(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            repeated = cell.get(f"{_TABLE}number-columns-repeated") or "1"
            times = int(repeated) if repeated.isdecimal() and len(repeated) < 9 else 1
            cells += [_text(cell)] * min(times, _MAX_REPEATED)
        while cells and not cells[-1]:
            cells.pop()
        yield cells


def _text(element: Any) -> str:
    words: list[str] = []
    stack: list[tuple[bool, Any]] = [(True, element)]
    while stack:
        is_start, inner = stack.pop()
        if not is_start:
            words.append(inner.tail or "")
            continue
        if inner is not element:
            stack.append((False, inner))
        if inner.tag in _LEFT_OUT or not isinstance(inner.tag, str):
            continue
        if inner.tag == f"{_TEXT}s":
            words.append(" ")
        elif inner.tag == f"{_TEXT}tab":
            words.append("\t")
        elif inner.tag == f"{_TEXT}line-break" or (inner.tag == f"{_TEXT}p" and words):
            words.append("\n")
        words.append(inner.text or "")
        stack += [(True, child) for child in reversed(inner)]
    return "".join(words)
