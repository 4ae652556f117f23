"""Files become text with places: `parse` for all kinds of files, `boxes` to highlight a passage,
`picture` to see the page that it is on.

Every file is read by a child process of its own (process.py), within limits (limits.py). What is known
of a kind of file is in formats/.
"""

from pathlib import Path
from typing import TypeVar

from retrieval.parsing.errors import Unreadable
from retrieval.parsing.limits import Limits
from retrieval.parsing.messages import Answer, Request
from retrieval.parsing.pages import Block, Box, Page, Parsed, Picture
from retrieval.parsing.process import ask_child, tesseract

__all__ = [
    "PICTURE_LIMITS",
    "Block",
    "Box",
    "Limits",
    "Page",
    "Parsed",
    "Picture",
    "Unreadable",
    "boxes",
    "parse",
    "picture",
]

PICTURE_LIMITS = Limits(cpu_s=20, timeout_s=30.0)
"""Somebody looks at the screen: a page that takes longer is told to be unreadable."""

_T = TypeVar("_T", Parsed, Picture, list[Box])


def parse(path: Path, *, name: str, limits: Limits) -> Parsed:
    """The text of a file. `name` is what its owner calls it; it decides only between kinds of text.

    Takes as long as limits.timeout_s. Raises Unreadable for what is in the file, and OSError if it
    cannot be opened.
    """
    with path.open("rb") as file:
        size_bytes = path.stat().st_size
        if size_bytes == 0:
            raise Unreadable("empty", "The file is empty.")
        if size_bytes > limits.max_file_bytes:
            most = limits.max_file_bytes / 2**20
            raise Unreadable("too_large", f"The file is larger than {most:,.0f} MiB.")
        request = Request("parse", file.fileno(), name, limits, tesseract())
        return _expect(Parsed, ask_child(request))


def boxes(
    path: Path, page_number: int, start: int, end: int, *, limits: Limits | None = None
) -> list[Box]:
    """Where characters of a PDF's page are on it: a rectangle for each line or part of one.

    `start` and `end` count from the beginning of the page (a place in the document's text less
    Page.start). Empty for a page that has been read by OCR, and for what is no PDF. Raises Unreadable
    and OSError as `parse` does.
    """
    with path.open("rb") as file:
        asked = Request(
            "boxes",
            file.fileno(),
            path.name,
            limits or Limits(),
            page_number=page_number,
            start=start,
            end=end,
        )
        return _expect(list, ask_child(asked))


def picture(
    path: Path,
    page_number: int,
    width_px: int,
    *,
    for_model: bool = False,
    limits: Limits = PICTURE_LIMITS,
) -> Picture:
    """A page of a PDF, or of a file that is a picture itself, drawn anew: nothing of the file's own
    bytes is in it. It is `width_px` wide, or less where it would have too many pixels or the file has no
    more; `for_model` neither side is longer. Raises Unreadable (also for a page that is not there) and
    OSError as `parse` does."""
    with path.open("rb") as file:
        asked = Request(
            "picture",
            file.fileno(),
            path.name,
            limits,
            page_number=page_number,
            width_px=width_px,
            for_model=for_model,
        )
        return _expect(Picture, ask_child(asked))


def _expect(kind: type[_T], answer: Answer) -> _T:
    if isinstance(answer, Unreadable):
        raise answer
    if not isinstance(answer, kind):
        raise Unreadable("broken", "The file could not be read.")
    return answer
