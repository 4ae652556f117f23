"""Where characters of a PDF are on their page."""

import ctypes
import os

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.formats.pdf_text import PageText, opened_pdf, page_of
from retrieval.parsing.kinds import PDF, kind_of
from retrieval.parsing.messages import Request
from retrieval.parsing.pages import Box
from retrieval.parsing.source import Source

_UNITS_PER_PT = 64  # PDFium tells places on a page in whole units of it
_MAX_BOXES = 1_000


def boxes(request: Request) -> list[Box]:
    """Raises Unreadable."""
    with os.fdopen(request.fd, "rb") as file:
        source = Source(file, request.name, request.limits, request.tesseract)
        if kind_of(source) != PDF:
            return []
        with opened_pdf(source) as document:
            if not 1 <= request.page_number <= len(document):
                raise Unreadable("broken", f"The file has no page {request.page_number}.")
            page = page_of(document, request.page_number - 1)
            return _of(page, request.start, request.end)


def _of(page: pypdfium2.PdfPage, start: int, end: int) -> list[Box]:
    textpage = page.get_textpage()
    words = PageText(textpage)
    start, end = max(0, start), min(end, len(words.text))
    if start >= end:
        return []
    first, last = words.index(start), words.index(end - 1)
    # PDFium joins neighbours on a line to one rectangle.
    count = min(textpage.count_rects(first, last - first + 1), _MAX_BOXES)
    return [_as_shown(page, *textpage.get_rect(index)) for index in range(count)]


def _as_shown(page: pypdfium2.PdfPage, left: float, bottom: float, right: float, top: float) -> Box:
    """From a PDF's own space, which begins at the bottom and knows nothing of turns and cuts."""
    corners = [_point(page, left, top), _point(page, right, bottom)]
    (x0, x1), (y0, y1) = (sorted(axis) for axis in zip(*corners, strict=True))
    return Box(x0, y0, x1, y1)


def _point(page: pypdfium2.PdfPage, x: float, y: float) -> tuple[float, float]:
    width, height = (round(size * _UNITS_PER_PT) for size in page.get_size())
    across, down = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, across, down)
    return across.value / _UNITS_PER_PT, down.value / _UNITS_PER_PT
