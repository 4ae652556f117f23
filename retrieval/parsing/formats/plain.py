"""Plain text: paragraphs by empty lines, pages by form feeds."""

import re

from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer

_EMPTY_LINES = re.compile(r"\n[ \t]*\n\s*")


def read(source: Source, writer: Writer) -> None:
    for page in re.split("\f", source.text):
        add_paragraphs(page, writer)


def add_paragraphs(text: str, writer: Writer, *, new_page: bool = True) -> None:
    """A page of them, or more of the page that is open."""
    if not text.strip():
        return
    if new_page:
        writer.page()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for paragraph in _EMPTY_LINES.split(text):
        writer.add(paragraph)
