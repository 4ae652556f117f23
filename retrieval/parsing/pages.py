"""What a file becomes: one text, and the places of its pages and blocks in it."""

from dataclasses import dataclass

KINDS = frozenset({"heading", "text", "table", "code", "list"})


@dataclass(frozen=True, slots=True)
class Block:
    """A run of text that belongs together: the document's text from `start` to before `end`.

    `kind` is one of KINDS; `level` is a heading's, from 1 to 6, and 0 for everything else.
    """

    start: int
    end: int
    kind: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page, sheet, slide, chapter or message: the document's text from `start` to before `end`.

    `number` counts from 1. `label` is its own name ("Sheet1"), if it has one. A page of a PDF has a box.
    """

    number: int
    start: int
    end: int
    label: str = ""
    width_pt: float = 0.0
    height_pt: float = 0.0


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text: NFC, "\\n" as newline, without NULs and lone surrogates.

    Pages and blocks are in order and do not overlap; between blocks there is white space only.
    `language` is a BCP 47 tag that the file itself names, else "". `notes` say in sentences what was
    left out.
    """

    text: str
    pages: tuple[Page, ...]
    blocks: tuple[Block, ...]
    title: str
    media_type: str
    language: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, in points from its top left corner, as the page is shown."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as it is seen, as a WebP; for a model as a JPEG, which all of them read."""

    data: bytes
