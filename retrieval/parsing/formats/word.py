"""DOCX: headings, paragraphs, lists, tables and notes. It has no pages until it is printed."""

import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn
from lxml import etree

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.packed import opened_zip, parse_xml
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, one_line, table

_HEADING = re.compile(r"heading ([1-6])$", re.I)
_TEXT, _TAB, _HYPHEN = qn("w:t"), qn("w:tab"), qn("w:noBreakHyphen")
_BREAKS = {qn("w:br"), qn("w:cr")}
_PARAGRAPH, _TABLE = qn("w:p"), qn("w:tbl")
# Deleted text, the old form of drawings, and codes of fields.
_LEFT_OUT = {qn("w:del"), qn("w:moveFrom"), qn("w:instrText"), qn("w:pPr"), qn("w:rPr")}
_LEFT_OUT.add("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")
_NOTES = ("footnotes", "endnotes")


def read(source: Source, writer: Writer) -> None:
    with opened_zip(source):
        pass
    source.file.seek(0)
    try:
        document = docx.Document(source.file)
    except (KeyError, ValueError, etree.XMLSyntaxError) as error:
        raise Unreadable("broken", "The document is damaged: a part of it is missing.") from error
    properties = document.core_properties
    writer.title, writer.language = properties.title or "", properties.language or ""
    writer.page()
    _add_body(document.element.body, _levels_by_style(document), writer)
    for part in document.part.package.iter_parts():
        if any(str(part.partname) == f"/word/{name}.xml" for name in _NOTES):
            _add_notes(parse_xml(part.blob), writer)


def _add_body(body: Any, levels: dict[str, int], writer: Writer) -> None:
    """Items of a list that follow each other are one block."""
    items: list[str] = []
    for element in _paragraphs_and_tables(body):
        text = "" if element.tag == _TABLE else _text(element)
        if element.tag == _PARAGRAPH and not text.strip():
            continue
        level = _level(element, levels)
        depth = _depth_of_item(element) if level == 0 else None
        if depth is not None:
            items.append("  " * depth + "- " + one_line(text))
            continue
        writer.add("\n".join(items), "list")
        items.clear()
        if element.tag == _TABLE:
            writer.add(table(list(_rows(element))), "table")
        else:
            writer.add(one_line(text) if level else text, "heading" if level else "text", level)
    writer.add("\n".join(items), "list")


def _paragraphs_and_tables(body: Any) -> Iterator[Any]:
    """Also those in content controls, which python-docx passes over. Tables are left whole."""
    stack = list(reversed(body))
    while stack:
        element = stack.pop()
        if element.tag in (_PARAGRAPH, _TABLE):
            yield element
        elif element.tag not in _LEFT_OUT:
            stack += reversed(element)


def _text(element: Any) -> str:
    """All that is shown of a paragraph, with insertions, links and text boxes."""
    words: list[str] = []
    stack = [element]
    while stack:
        inner = stack.pop()
        if inner.tag == _TEXT:
            words.append(inner.text or "")
        elif inner.tag == _TAB:
            words.append("\t")
        elif inner.tag in _BREAKS:
            words.append("\n")
        elif inner.tag == _HYPHEN:
            words.append("-")
        elif inner.tag not in _LEFT_OUT:
            if inner.tag == _PARAGRAPH and words:
                words.append("\n")  # in a cell or a text box
            stack += reversed(inner)
    return "".join(words)


def _rows(element: Any) -> Iterator[list[str]]:
    """A cell over several columns counts as several, of which the first has the text."""
    for row in element.iter(qn("w:tr")):
        if next(row.iterancestors(_TABLE), None) is not element:
            continue  # of a table in a cell, whose text the cell has
        cells: list[str] = []
        for cell in row.iter(qn("w:tc")):
            if next(cell.iterancestors(qn("w:tr"))) is row:
                span = cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}")
                width = _number(span.get(qn("w:val"))) if span is not None else 1
                cells += [_text(cell), *[""] * (min(width, 100) - 1)]
        yield cells


def _levels_by_style(document: Any) -> dict[str, int]:
    """Styles that are headings: by name, or by the level that they have in an outline."""
    levels = {}
    for style in document.styles:
        heading = _HEADING.match(style.name or "")
        outline = style.element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if heading:
            levels[style.style_id] = int(heading[1])
        elif style.name == "Title":
            levels[style.style_id] = 1
        elif outline is not None and (level := _number(outline.get(qn("w:val")), 9)) < 6:
            levels[style.style_id] = level + 1
    return levels


def _level(element: Any, levels: dict[str, int]) -> int:
    """Of a heading, from 1; 0 for all else."""
    style = element.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    outline = element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    if outline is not None and (level := _number(outline.get(qn("w:val")), 9)) < 6:
        return level + 1
    return levels.get(style.get(qn("w:val")), 0) if style is not None else 0


def _depth_of_item(element: Any) -> int | None:
    """How deep in a list; None outside of lists."""
    numbering = element.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
    if numbering is not None:
        level = numbering.find(qn("w:ilvl"))
        return min(_number(level.get(qn("w:val"))), 8) if level is not None else 0
    style = element.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    is_item = style is not None and (style.get(qn("w:val")) or "").startswith("List")
    return 0 if is_item else None


def _add_notes(root: Any, writer: Writer) -> None:
    for note in root:
        text = _text(note).strip()
        if text:
            writer.add(f"[{note.get(qn('w:id'))}] {text}")


def _number(value: str | None, otherwise: int = 0) -> int:
    return int(value) if value and value.isdecimal() and len(value) < 9 else otherwise
