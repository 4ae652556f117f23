"""What goes to the child and comes back, as JSON with its length in front.

The child reads hostile files, so what it says is believed no further than its form is right.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from typing import Any, Literal

from retrieval.parsing.errors import CODES, Unreadable
from retrieval.parsing.limits import Limits
from retrieval.parsing.pages import KINDS, Block, Box, Page, Parsed, Picture

_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Request:
    """`fd` is the file, open for reading. For boxes: `start` and `end` are characters of the page; for a
    picture: how wide it is to be, or `for_model` how wide and how high at most."""

    task: Literal["parse", "boxes", "picture"]
    fd: int
    name: str
    limits: Limits
    tesseract: str = ""  # its path; "" if there is none
    page_number: int = 0
    start: int = 0
    end: int = 0
    width_px: int = 0
    for_model: bool = False


Answer = Parsed | list[Box] | Picture | Unreadable


class BadAnswer(Exception):
    """Cut off, or of another form."""


def packed_request(request: Request) -> bytes:
    return json.dumps(asdict(request)).encode()


def unpacked_request(data: bytes) -> Request:
    fields = json.loads(data)
    return Request(**{**fields, "limits": Limits(**fields["limits"])})


def packed_answer(answer: Answer) -> bytes:
    body = json.dumps(_plain(answer), ensure_ascii=False).encode()
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def unpacked_answer(data: bytes) -> Answer:
    """Raises BadAnswer."""
    length, body = int.from_bytes(data[:_LENGTH_BYTES], "big"), data[_LENGTH_BYTES:]
    if len(data) < _LENGTH_BYTES or len(body) != length:
        raise BadAnswer("cut off")
    try:
        return _answer(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadAnswer("of another form") from error


def max_answer_bytes(limits: Limits) -> int:
    """No honest answer is larger: a character takes 4 bytes (6 as an escape), a block some thirty."""
    return 64 * limits.max_chars + 1024 * limits.max_pages + 2**20


def _plain(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Unreadable):
        return {"code": answer.code, "message": answer.message}
    if isinstance(answer, list):
        return {"boxes": [(box.x0, box.y0, box.x1, box.y1) for box in answer]}
    if isinstance(answer, Picture):
        return {"picture": b64encode(answer.data).decode()}
    return {
        "text": answer.text,
        "pages": [
            (page.number, page.start, page.end, page.label, page.width_pt, page.height_pt)
            for page in answer.pages
        ],
        "blocks": [(block.start, block.end, block.kind, block.level) for block in answer.blocks],
        "title": answer.title,
        "media_type": answer.media_type,
        "language": answer.language,
        "notes": answer.notes,
    }


def _answer(plain: dict[str, Any]) -> Answer:
    if "code" in plain:
        _require(plain["code"] in CODES)
        return Unreadable(plain["code"], _string(plain["message"])[:1000])
    if "boxes" in plain:
        return [Box(*map(float, box)) for box in plain["boxes"]]
    if "picture" in plain:
        data = b64decode(plain["picture"], validate=True)
        is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
        _require(is_webp or data[:3] == b"\xff\xd8\xff")
        return Picture(data)
    parsed = Parsed(
        text=_string(plain["text"]),
        pages=tuple(Page(*page) for page in plain["pages"]),
        blocks=tuple(Block(*block) for block in plain["blocks"]),
        title=_string(plain["title"]),
        media_type=_string(plain["media_type"]),
        language=_string(plain["language"]),
        notes=tuple(map(_string, plain["notes"])),
    )
    _check_places(parsed)
    return parsed


def _check_places(parsed: Parsed) -> None:
    length = len(parsed.text)
    for spans in (parsed.pages, parsed.blocks):
        before = 0
        for span in spans:
            _require(type(span.start) is type(span.end) is int)
            _require(before <= span.start <= span.end <= length)
            before = span.end
    _require(all(block.kind in KINDS and 0 <= block.level <= 6 for block in parsed.blocks))
    for number, page in enumerate(parsed.pages, 1):
        _require(page.number == number and isinstance(page.label, str))
        _require(isinstance(page.width_pt + page.height_pt, int | float))


def _string(value: object) -> str:
    _require(isinstance(value, str))
    return str(value)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
