"""EPUB: a page for each chapter, in the order in which the book is read."""

import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.markup import add_html, parse_html
from retrieval.parsing.packed import member, opened_zip, parse_xml
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
# Fonts may be scrambled in a book that anybody may read.
_OF_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_CHAPTERS = ("application/xhtml+xml", "text/html")


def read(source: Source, writer: Writer) -> None:
    with opened_zip(source, may_declare=(".xhtml", ".ncx", ".opf")) as book:
        _check_open(book)
        folder, package = _package(book)
        writer.title = package.findtext(f".//{_DC}title") or ""
        writer.language = package.findtext(f".//{_DC}language") or ""
        for number, path in enumerate(_spine(package, folder), 1):
            _add_chapter(book, path, number, writer)


def _check_open(book: zipfile.ZipFile) -> None:
    if _ENCRYPTION not in book.namelist():
        return
    for element in parse_xml(member(book, _ENCRYPTION)).iter("{*}EncryptionMethod"):
        if element.get("Algorithm") not in _OF_FONTS:
            raise Unreadable("encrypted", "The book is protected against copying.")


def _package(book: zipfile.ZipFile) -> tuple[str, Any]:
    """The folder that its paths start from, and the list of what the book is made of."""
    root = parse_xml(member(book, _CONTAINER)).find(".//{*}rootfile")
    path = root.get("full-path") if root is not None else None
    if not path:
        raise Unreadable("broken", "The book is damaged: it does not say where it begins.")
    return posixpath.dirname(path), parse_xml(member(book, path))


def _spine(package: Any, folder: str) -> list[str]:
    paths = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in package.iter(f"{_OPF}item")
        if item.get("media-type") in _CHAPTERS and item.get("properties") != "nav"
    }
    return [
        paths[ref.get("idref")]
        for ref in package.iter(f"{_OPF}itemref")
        if ref.get("idref") in paths
    ]


def _add_chapter(book: zipfile.ZipFile, path: str, number: int, writer: Writer) -> None:
    if path not in book.namelist():
        writer.note("A chapter that the book lists is missing from the file.")
        return
    root = parse_html(member(book, path))
    if root is None:
        return
    heading = root.find(".//h1") if root.find(".//h1") is not None else root.find(".//h2")
    words = heading.text_content() if heading is not None else root.findtext(".//title")
    writer.page(words or f"Chapter {number}")
    add_html(root, writer)
