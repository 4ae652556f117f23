"""PPTX: a page for each slide, with its title, its text, its tables and the speaker's notes."""

from collections.abc import Iterable, Iterator
from typing import Any

import pptx
from lxml import etree
from pptx.exc import PackageNotFoundError

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.packed import opened_zip
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, one_line, table

_MAX_NAMED = 10
_MAX_DEPTH = 20  # of groups in groups


def read(source: Source, writer: Writer) -> None:
    with opened_zip(source):
        pass
    source.file.seek(0)
    try:
        presentation = pptx.Presentation(source.file)
    except (KeyError, ValueError, PackageNotFoundError, etree.XMLSyntaxError) as error:
        message = "The presentation is damaged: a part of it is missing."
        raise Unreadable("broken", message) from error
    writer.title = presentation.core_properties.title or ""
    writer.language = presentation.core_properties.language or ""
    if writer.title == "PowerPoint Presentation":
        writer.title = ""  # what PowerPoint writes where nobody has
    for number, slide in _visible(list(enumerate(presentation.slides, 1)), writer):
        _add_slide(number, slide, writer)


def _visible(slides: list[tuple[int, Any]], writer: Writer) -> list[tuple[int, Any]]:
    """With their numbers, which count the hidden ones too."""
    hidden = [number for number, slide in slides if slide.element.get("show") in ("0", "false")]
    if not hidden or len(hidden) == len(slides):
        return slides
    numbers = ", ".join(map(str, hidden[:_MAX_NAMED])) + (", …" if len(hidden) > _MAX_NAMED else "")
    writer.note(f"Hidden slides were left out: {numbers}.")
    return [(number, slide) for number, slide in slides if number not in hidden]


def _add_slide(number: int, slide: Any, writer: Writer) -> None:
    title = slide.shapes.title
    words = one_line(title.text_frame.text) if title is not None else ""
    writer.page(words or f"Slide {number}")
    writer.add(words, "heading", 1)
    for shape in _shapes(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            _add_shape(shape, writer)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        writer.add(f"Notes: {notes}" if notes else "")


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _MAX_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _add_shape(shape: Any, writer: Writer) -> None:
    if getattr(shape, "has_table", False):
        rows = [[cell.text for cell in row.cells] for row in shape.table.rows]
        writer.add(table(rows), "table")
    elif getattr(shape, "has_text_frame", False):
        paragraphs = [p for p in shape.text_frame.paragraphs if p.text.strip()]
        if len(paragraphs) > 1:
            lines = ("  " * min(p.level, 8) + "- " + one_line(p.text) for p in paragraphs)
            writer.add("\n".join(lines), "list")
        elif paragraphs:
            writer.add(paragraphs[0].text)
