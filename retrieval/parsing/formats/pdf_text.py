"""The text of a PDF's page, with the place of each character and the lines it is set in.

Characters are those of PDFium's text page, by their index: `boxes` finds the same ones again.
"""

import ctypes
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import hypot

import pypdfium2
import pypdfium2.raw as pdfium

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.source import Source
from retrieval.parsing.writer import clean

# A hyphen at the end of a line that PDFium takes for a division, with the line's end; a line's end;
# characters that `clean` leaves out.
_CHANGED = re.compile(
    "[\x02\ufffe](?:\r?\n)?|\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff\uffff]+"
    "|[\ud800-\udfff]+"
)
_LINE = re.compile("[^\n]+")


@dataclass(frozen=True, slots=True)
class Line:
    """Characters of the page's text, the height that they stand at, and the size of their letters."""

    start: int
    end: int
    baseline_pt: float  # from the bottom of the page
    size_pt: float


class PageText:
    """`text` is clean; its characters from `_starts[i]` on are PDFium's from `_indices[i]` on."""

    def __init__(self, textpage: pypdfium2.PdfTextPage) -> None:
        self._textpage = textpage
        self._starts: list[int] = []
        self._indices: list[int] = []
        self.text = self._join(_raw(textpage))

    def index(self, place: int) -> int:
        """Of the character at this place of the text, PDFium's index."""
        piece = max(0, bisect_right(self._starts, place) - 1)
        return self._indices[piece] + place - self._starts[piece] if self._starts else 0

    def lines(self) -> Iterator[Line]:
        """In the order of the text, without empty ones."""
        for match in _LINE.finditer(self.text):
            words = match[0]
            if words.strip():
                first = self.index(match.start() + len(words) - len(words.lstrip()))
                last = self.index(match.start() + len(words.rstrip()) - 1)
                size_pt = min(self._size_pt(first), self._size_pt(last))  # an initial is no heading
                yield Line(match.start(), match.end(), self._baseline_pt(first), size_pt)

    def _size_pt(self, index: int) -> float:
        """A font's own size is often 1, and the page scales it."""
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(self._textpage, index, matrix)
        scale = hypot(matrix.c, matrix.d)
        return float(pdfium.FPDFText_GetFontSize(self._textpage, index)) * (scale or 1.0)

    def _baseline_pt(self, index: int) -> float:
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDFText_GetCharOrigin(self._textpage, index, x, y)
        return y.value

    def _join(self, raw: str) -> str:
        pieces: list[str] = []
        length = 0
        for index, piece in _pieces(raw):
            if piece:
                self._starts.append(length)
                self._indices.append(index)
                pieces.append(piece)
                length += len(piece)
        return "".join(pieces)


@contextmanager
def opened_pdf(source: Source) -> Iterator[pypdfium2.PdfDocument]:
    """Raises Unreadable."""
    size_bytes = len(source.mapped)
    try:
        # Not copied: pages are read from the disk as they are needed.
        document = pypdfium2.PdfDocument((ctypes.c_char * size_bytes).from_buffer(source.mapped))
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            message = "The PDF is protected by a password. Save it without one."
            raise Unreadable("encrypted", message) from error
        raise Unreadable("broken", "The PDF is damaged and cannot be opened.") from error
    with document:
        with suppress(pypdfium2.PdfiumError):
            document.init_forms()  # draws what is filled in and has been drawn by nobody yet
        yield document


def page_of(document: pypdfium2.PdfDocument, index: int) -> pypdfium2.PdfPage:
    """With what is filled in and written over it as a part of it; else there is no text in fields, and
    characters have other indices than where it is. Raises pypdfium2.PdfiumError."""
    page = document[index]
    if pdfium.FPDFPage_GetAnnotCount(page) <= 0:
        return page
    is_changed = pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS
    if not is_changed:
        return page
    page.close()
    return document[index]


def _raw(textpage: pypdfium2.PdfTextPage) -> str:
    """A character for each of PDFium's indices."""
    count = textpage.count_chars()
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(textpage, 0, count, buffer) if count else 1
    text = bytes(buffer)[: 2 * (written - 1)].decode("utf-16-le", "surrogatepass")
    if len(text) == count:
        return text
    # Some were left out, or stand for none or two of UTF-16: one by one, which takes longer.
    numbers = (pdfium.FPDFText_GetUnicode(textpage, index) for index in range(count))
    return "".join(chr(number) if number < 0x110000 else "\0" for number in numbers)


def _pieces(raw: str) -> Iterator[tuple[int, str]]:
    """(index, clean text) that make the page's text, in order."""
    after = 0
    for match in _CHANGED.finditer(raw):
        yield from _composed(after, raw[after : match.start()])
        is_newline = match[0][0] not in "\x02\ufffe" and clean(match[0]) == "\n"
        yield match.start(), "\n" if is_newline else ""
        after = match.end()
    yield from _composed(after, raw[after:])


def _composed(index: int, text: str) -> Iterator[tuple[int, str]]:
    """NFC: letters and their accents may come apart, and become one."""
    if unicodedata.is_normalized("NFC", text):
        yield index, text
        return
    import regex

    for cluster in regex.finditer(r"\X", text):
        composed = unicodedata.normalize("NFC", cluster[0])
        if len(composed) <= len(cluster[0]):
            yield index + cluster.start(), composed
        else:  # some letters have no composed form and become two
            for char in composed:
                yield index + cluster.start(), char
