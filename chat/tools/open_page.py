"""A page of the web, opened for a model that has its address from a search or from its user.

An address says something to whoever serves it: whatever the model has read could have told it to put
what it knows into one. So a page is opened unasked only where a search of this chat has listed it, or
its user has written it, to the letter; any other address waits for its user's word
(chat/approvals.py), also one that the model remembers. Addresses inside of pages are those of others.

It is fetched as documents are (retrieval/egress.py: nothing inside of the house, each redirect judged
anew), and read as they are, in a process of its own.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from chat.off_loop import off_loop_for_pages
from chat.tools.base import Heard, Tool, ToolFailed
from chat.tools.web_search import WEB_SEARCH, addresses_in, on_one_line
from retrieval.egress import fetch
from retrieval.egress_network import Unfetchable
from retrieval.parsing import Limits, Unreadable, parse

MAX_BYTES = 8 * 2**20
MAX_URL_CHARS = 2_000
PIECE_CHARS = 8_000
"""Of a page in one result: about two thousand tokens."""

FETCH_S, READ_S = 15.0, 15.0
WAIT_S = 90.0
"""For the user's other pages, and those of others. None of them takes longer than these two together."""

_LIMITS = Limits(
    max_file_bytes=MAX_BYTES,
    max_chars=1_000_000,
    max_pages=300,
    cpu_s=12,
    timeout_s=READ_S,
    max_ocr_pages=0,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
_BEHIND = frozenset(".,;:!?)]}'’”»")
"""Marks of a sentence that may stand behind an address."""


def is_known(arguments: dict[str, Any], heard: Heard) -> bool:
    """Whether the address is one that a search has listed, or the user has written."""
    url = _url_of(arguments)
    listed = (text for name, text in heard.results if name == WEB_SEARCH.name)
    if any(url in addresses_in(text) for text in listed):
        return True
    written = (found for text in heard.questions for found in _ADDRESS.findall(text))
    return bool(url) and any(
        one.startswith(url) and set(one[len(url) :]) <= _BEHIND for one in written
    )


async def _run(arguments: dict[str, Any], user: str) -> str:
    """Raises ToolFailed."""
    url = _url_of(arguments)
    if not url:
        raise ToolFailed("'url' is missing")
    start = _start_of(arguments)
    if len(url) > MAX_URL_CHARS:
        raise ToolFailed(f"the address is longer than {MAX_URL_CHARS:,} characters")
    return await off_loop_for_pages(user, _opened, url, start)


def _url_of(arguments: Any) -> str:
    url = arguments.get("url") if isinstance(arguments, dict) else None
    return url.strip() if isinstance(url, str) else ""


def _start_of(arguments: dict[str, Any]) -> int:
    """Models write null for what they leave out, and 8000.0 for a number."""
    start = arguments.get("start") or 0
    is_number = isinstance(start, int | float) and not isinstance(start, bool)
    if not is_number or not 0 <= start <= _LIMITS.max_chars or start != int(start):
        raise ToolFailed("'start' is the number of a character, from 0 on")
    return int(start)


def _opened(url: str, start: int) -> str:
    with tempfile.TemporaryDirectory(prefix="vitrine-page-") as folder:
        path = Path(folder) / "page"
        try:
            found = fetch(url, path, max_bytes=MAX_BYTES, timeout_s=FETCH_S)
            read = parse(path, name=found.name, limits=_LIMITS)
        except (Unfetchable, Unreadable) as error:
            raise ToolFailed(error.message) from None
    text = read.text.strip()
    piece = text[start : start + PIECE_CHARS]
    if not piece:
        raise ToolFailed(f"there is no text from {start} on; the page has {len(text)} characters")
    end = start + len(piece)
    rest = "" if end == len(text) else f'(more follows: {len(text)} characters; "start": {end})'
    return "\n\n".join(filter(None, (on_one_line(read.title)[:200], found.final_url, piece, rest)))


OPEN_PAGE = Tool(
    name="open_page",
    description=(
        "Read a page of the web, or a PDF, by its address: one that a search has found or the user"
        " has given. Returns its text, a piece at a time."
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The address, as it was given"},
            "start": {"type": "integer", "description": "From which character on; 0 if not given"},
        },
        "required": ["url"],
    },
    run=_run,
    title="Open page",
    server="search",
    timeout_s=WAIT_S + FETCH_S + READ_S,
    is_known=is_known,
    is_told_user=True,
)
