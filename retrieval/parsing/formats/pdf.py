"""PDF: its pages with their boxes, headings by the outline and by size, scanned pages through OCR."""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.formats.pdf_text import Line, PageText, opened_pdf, page_of
from retrieval.parsing.ocr import Recognizer
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, one_line, too_many_pages

_MAX_BOOKMARKS = 5_000
_MAX_HEADING_CHARS = 200
_LARGER = 1.15  # than most letters of the document: a heading
_PARAGRAPH_GAP = 1.6  # sizes of letters, from a line to the next
_WORD = re.compile(r"[^\W\d_]{2}")

_Span = tuple[int, int, str, int]  # start, end, kind, level


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A page as it was read, until the sizes of all pages are known."""

    text: str
    lines: list[Line]
    width_pt: float
    height_pt: float
    is_blank: bool
    is_damaged: bool = False


def read(source: Source, writer: Writer) -> None:
    with opened_pdf(source) as document:
        if len(document) > source.limits.max_pages:
            raise too_many_pages(source.limits)
        writer.title = document.get_metadata_value("Title")
        writer.language = _language(document)
        sheets = list(_sheets(document, source.limits.max_chars))
        outline = _outline(document)
        levels = _heading_levels(sheets)
        recognizer = Recognizer(source.limits, source.tesseract)
        num_unread = 0
        for index, sheet in enumerate(sheets):
            writer.page(document.get_page_label(index), sheet.width_pt, sheet.height_pt)
            if sheet.text.strip():
                titles = outline.get(index, {})
                writer.add_laid_out(sheet.text, _blocks(sheet, titles, levels))
            elif not sheet.is_blank and recognizer.has_room():
                for paragraph in recognizer.paragraphs_of(page_of(document, index)):
                    writer.add(paragraph)
            else:
                num_unread += not sheet.is_blank
    _tell_damaged(sheets, writer)
    if num_unread:
        _tell_unread(num_unread, all(not sheet.text.strip() for sheet in sheets), source, writer)


def _sheets(document: pypdfium2.PdfDocument, max_chars: int) -> Iterator[_Sheet]:
    num_chars = 0
    for index in range(len(document)):
        try:
            page = page_of(document, index)
        except pypdfium2.PdfiumError:
            yield _Sheet("", [], 0.0, 0.0, is_blank=True, is_damaged=True)
            continue
        textpage = page.get_textpage()
        words = PageText(textpage)
        num_chars += len(words.text)
        if num_chars > max_chars:
            message = f"The file holds over {max_chars:,} characters of text. Split it."
            raise Unreadable("too_large", message)
        is_blank = pdfium.FPDFPage_CountObjects(page) == 0
        width_pt, height_pt = page.get_size()
        yield _Sheet(words.text, list(words.lines()), width_pt, height_pt, is_blank)
        textpage.close()
        page.close()


def _language(document: pypdfium2.PdfDocument) -> str:
    length = pdfium.FPDFCatalog_GetLanguage(document, None, 0)
    if not 0 < length <= 256:
        return ""
    buffer = (ctypes.c_ushort * (length // 2))()
    pdfium.FPDFCatalog_GetLanguage(document, buffer, length)
    return bytes(buffer).decode("utf-16-le", "ignore").rstrip("\0")


def _outline(document: pypdfium2.PdfDocument) -> dict[int, dict[str, int]]:
    """By index of page: titles, written alike, and their levels."""
    outline: dict[int, dict[str, int]] = {}
    for bookmark in islice(document.get_toc(max_depth=6), _MAX_BOOKMARKS):
        place = bookmark.get_dest()
        index = place.get_index() if place else None
        if index is not None:
            outline.setdefault(index, {})[_alike(bookmark.get_title())] = bookmark.level + 1
    return outline


def _heading_levels(sheets: list[_Sheet]) -> dict[int, int]:
    """By size in half points: what is larger than most letters is a heading, the largest of level 1."""
    num_chars: Counter[int] = Counter()
    for sheet in sheets:
        for line in sheet.lines:
            num_chars[_rounded(line.size_pt)] += line.end - line.start
    if not num_chars:
        return {}
    usual = num_chars.most_common(1)[0][0]
    larger = sorted((size for size in num_chars if size > _LARGER * usual), reverse=True)
    return {size: min(level, 6) for level, size in enumerate(larger, 1)}


def _blocks(sheet: _Sheet, titles: dict[str, int], levels: dict[int, int]) -> Iterator[_Span]:
    """Lines that stand close and are of one size are a paragraph, or a heading of several lines."""
    start, level = 0, 0
    before: Line | None = None
    for line in sheet.lines:
        its_level = _level(sheet.text[line.start : line.end], line, titles, levels)
        if before is None or its_level != level or _is_apart(before, line):
            if before is not None:
                yield _block(start, before.end, level)
            start, level = line.start, its_level
        before = line
    if before is not None:
        yield _block(start, before.end, level)


def _block(start: int, end: int, level: int) -> _Span:
    """Large letters over several lines are a paragraph in large letters."""
    if level and end - start <= _MAX_HEADING_CHARS:
        return start, end, "heading", level
    return start, end, "text", 0


def _level(text: str, line: Line, titles: dict[str, int], levels: dict[int, int]) -> int:
    if listed := titles.get(_alike(text)):
        return listed
    if len(text) > _MAX_HEADING_CHARS or not _WORD.search(text):
        return 0
    return levels.get(_rounded(line.size_pt), 0)


def _is_apart(before: Line, line: Line) -> bool:
    """Further down than the next line is, or further up: in the next column."""
    size_pt = max(before.size_pt, line.size_pt)
    down_pt = before.baseline_pt - line.baseline_pt
    return down_pt > _PARAGRAPH_GAP * size_pt or down_pt < -0.5 * size_pt


def _alike(title: str) -> str:
    return one_line(title).casefold()


def _rounded(size_pt: float) -> int:
    """Half points: letters of one size differ in the last digits."""
    return round(2 * size_pt)


def _tell_damaged(sheets: list[_Sheet], writer: Writer) -> None:
    num_damaged = sum(sheet.is_damaged for sheet in sheets)
    if num_damaged == len(sheets):
        raise Unreadable("broken", "The PDF is damaged: none of its pages can be read.")
    if num_damaged:
        what = "1 page is" if num_damaged == 1 else f"{num_damaged:,} pages are"
        writer.note(f"{what} damaged and could not be read.")


def _tell_unread(num_unread: int, all_of_it: bool, source: Source, writer: Writer) -> None:
    """Raises Unreadable where nothing else was read either."""
    what = "1 page holds" if num_unread == 1 else f"{num_unread:,} pages hold"
    if not source.tesseract:
        why = "and the program that reads pictures of text (tesseract) is not installed"
        if all_of_it:
            raise Unreadable("ocr_missing", f"The PDF holds pictures of pages and no text, {why}.")
        writer.note(f"{what} no text, {why}.")
    else:
        most = source.limits.max_ocr_pages
        writer.note(f"{what} no text; of such pages only the first {most:,} were read.")
