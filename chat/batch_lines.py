"""The file of a batch: requests as JSON, one a line. Read line by line, however large it is."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chat.json_bodies import read_json

MAX_LINES = 50_000  # OpenAI's own
MAX_BLANK_LINES = 50_000  # each takes time to be skipped, and nothing to be written
MAX_LINE_BYTES = 10 * 2**20  # as large as a request may be that comes alone
MAX_ID_CHARS = 512
MAX_ERRORS = 100  # listed of a file
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One request. `number` is its place in the file, from 1; `body` is what its endpoint is asked."""

    number: int
    custom_id: str
    body: dict[str, Any]


class BadLine(Exception):
    """`code` and `param` as OpenAI lists the errors of a batch."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


@dataclass(slots=True)
class Checked:
    """What a file holds. `model` is the one that all lines name, if it is one; `errors` are the first
    MAX_ERRORS, as OpenAI lists them."""

    num_lines: int = 0
    model: str = ""
    errors: list[dict[str, Any]] = field(default_factory=list)

    def complain(self, number: int | None, error: BadLine) -> None:
        if len(self.errors) < MAX_ERRORS:
            told = {"code": error.code, "message": str(error), "param": error.param, "line": number}
            self.errors.append(told)


def check(path: Path, endpoint: str) -> Checked:
    """Of every line: whether it is a request to `endpoint` with an id of its own. Raises OSError."""
    checked, seen, models = Checked(), set[str](), set[Any]()
    for number, raw in _lines(path):
        checked.num_lines += bool(raw)
        if checked.num_lines > MAX_LINES or number > MAX_LINES + MAX_BLANK_LINES:
            checked.complain(
                None, BadLine("too_many_tasks", f"There are over {MAX_LINES:,} lines.")
            )
            break
        if not raw:
            continue
        try:
            line = parse(number, raw, endpoint)
            if line.custom_id in seen:
                message = f"The custom_id '{line.custom_id[:80]}' is that of an earlier line, too."
                raise BadLine("duplicate_custom_id", message, "custom_id")
        except BadLine as error:
            checked.complain(number, error)
        else:
            seen.add(line.custom_id)
            models.add(str(line.body.get("model")))
    if not checked.num_lines:
        checked.complain(None, BadLine("empty_file", "There is no request in the file."))
    checked.model = models.pop() if len(models) == 1 else ""
    return checked


def read(path: Path, endpoint: str, done: Collection[int]) -> Iterator[Line]:
    """The lines of a file that was checked, but for those whose numbers are given."""
    for number, raw in _lines(path):
        if raw and number not in done:
            yield parse(number, raw, endpoint)


def parse(number: int, raw: bytes, endpoint: str) -> Line:
    """Raises BadLine."""
    if len(raw) > MAX_LINE_BYTES:
        raise BadLine("line_too_long", f"The line is longer than {MAX_LINE_BYTES // 2**20} MiB.")
    try:
        value = read_json(raw)
    except (ValueError, RecursionError):
        raise BadLine("invalid_json_line", "The line is not JSON.") from None
    if not isinstance(value, dict):
        raise BadLine("invalid_request", "The line is not a JSON object.")
    custom_id = value.get("custom_id")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= MAX_ID_CHARS:
        message = f"custom_id: a text of up to {MAX_ID_CHARS} characters is required."
        raise BadLine("missing_required_parameter", message, "custom_id")
    if value.get("method") != "POST":
        raise BadLine("invalid_method", "method: it has to be POST.", "method")
    if value.get("url") != endpoint:
        raise BadLine("invalid_url", f"url: it has to be the batch's, {endpoint}.", "url")
    if not isinstance(value.get("body"), dict):
        raise BadLine("missing_required_parameter", "body: an object is required.", "body")
    return Line(number, custom_id, value["body"])


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each with its number and stripped. Of one that is too long, only so much that it shows."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            rest = raw
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE_BYTES)
            if number == 1:
                raw = raw.removeprefix(_BOM)
            yield number, raw.strip()
