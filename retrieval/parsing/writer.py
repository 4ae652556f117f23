"""The text of a document while it is put together, block by block and page by page."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.limits import Limits
from retrieval.parsing.pages import Block, Page, Parsed

_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff\ufffe\uffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")
_MAX_TITLE_CHARS = 300


def clean(text: str) -> str:
    """NFC, "\\n" as newline, without controls and lone surrogates. Cleaning twice changes nothing."""
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _UNWANTED.sub("", _NEWLINES.sub("\n", text))
    return unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    return _SPACES.sub(" ", clean(text)).strip()


def table_row(cells: Iterable[str]) -> str:
    """As Markdown has it."""
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"


def table(rows: Sequence[Sequence[str]]) -> str:
    """As Markdown has it; the first row is the header. Empty for a table without a word."""
    width = max(map(len, rows), default=0)
    if not any(one_line(cell) for row in rows for cell in row):
        return ""
    lines = [table_row([*row, *[""] * (width - len(row))]) for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


@dataclass(slots=True)
class _OpenPage:
    label: str
    width_pt: float
    height_pt: float
    start: int | None = None  # known when text comes


class Writer:
    """`title` and `language` are what the document says of itself, as far as its reader has seen."""

    def __init__(self, limits: Limits) -> None:
        self.title = ""
        self.language = ""
        self.notes: list[str] = []
        self._limits = limits
        self._pieces: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._pages: list[Page] = []
        self._page: _OpenPage | None = None

    @property
    def num_pages(self) -> int:
        return len(self._pages) + (self._page is not None)

    def page(self, label: str = "", width_pt: float = 0.0, height_pt: float = 0.0) -> None:
        """Begins a page, and ends the one before."""
        self._end_page()
        if self.num_pages == self._limits.max_pages:
            raise too_many_pages(self._limits)
        self._page = _OpenPage(one_line(label)[:_MAX_TITLE_CHARS], width_pt, height_pt)

    def add(self, text: str, kind: str = "text", level: int = 0) -> None:
        """A block. What has no word is no block."""
        text = clean(text).strip("\n").rstrip()
        if kind in ("heading", "text"):
            text = text.lstrip()
        if text.strip():
            self.add_laid_out(text, [(0, len(text), kind, level)])

    def add_laid_out(self, text: str, blocks: Iterable[tuple[int, int, str, int]]) -> None:
        """Clean text, kept to the character, with its blocks as (start, end, kind, level) within it."""
        if not text:
            return
        if self._length:
            self._append("\n\n")
        if self._page is None:
            self.page()
        assert self._page is not None
        if self._page.start is None:
            self._page.start = self._length
        base = self._length
        self._append(text)
        self._blocks += (
            Block(base + start, base + end, kind, level) for start, end, kind, level in blocks
        )

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def parsed(self, media_type: str, name: str) -> Parsed:
        """All of it. Raises Unreadable if there is no text."""
        self._end_page()
        text = "".join(self._pieces)
        if not text.strip():
            raise Unreadable("no_text", "There is no text in the file.")
        headings = (text[b.start : b.end] for b in self._blocks if b.kind == "heading")
        title = one_line(self.title) or one_line(next(headings, "").lstrip("#"))
        return Parsed(
            text=text,
            pages=tuple(self._pages),
            blocks=tuple(self._blocks),
            title=(title or PurePosixPath(one_line(name)).stem)[:_MAX_TITLE_CHARS],
            media_type=media_type,
            language=_tag(self.language),
            notes=tuple(self.notes),
        )

    def _append(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._limits.max_chars:
            raise too_long(self._limits)
        self._pieces.append(text)

    def _end_page(self) -> None:
        page = self._page
        if page is not None:
            start = self._length if page.start is None else page.start
            number = len(self._pages) + 1
            size = (page.width_pt, page.height_pt)
            self._pages.append(Page(number, start, self._length, page.label, *size))
            self._page = None


def too_long(limits: Limits) -> Unreadable:
    message = f"The file holds over {limits.max_chars:,} characters of text. Split it."
    return Unreadable("too_large", message)


def too_many_pages(limits: Limits) -> Unreadable:
    most = limits.max_pages
    return Unreadable("too_many_pages", f"The file has more than {most:,} pages. Split it.")


def _tag(language: str) -> str:
    """A BCP 47 tag; "" for what is none."""
    language = language.strip()
    return language.replace("_", "-") if _LANGUAGE.fullmatch(language) else ""
