"""What can go wrong with another server, told apart by what helps against it."""

import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from inference.errors import ContextTooLong, InvalidParameter, RequestError
from inference.messages import Failed

Kind = Literal["down", "busy", "refused"]
UNAVAILABLE = "upstream_unavailable"
REFUSED = "upstream_error"
_LONG_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size)|maximum context|prompt is too long|too many.{0,8}tokens"
    r"|exceeds? the (available|model's|maximum) (context|prompt)",
    flags=re.IGNORECASE,
)
_MAX_SAID_CHARS = 500
_FULL = (429, 503, 529)
_STATUS = re.compile(r"[45][0-9]{2}")
_STATUS_OF = {  # the words of OpenAI, Anthropic and vLLM
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "authentication_error": 401,
    "AuthenticationError": 401,
    "permission_error": 403,
    "PermissionDeniedError": 403,
    "not_found_error": 404,
    "NotFoundError": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "RateLimitError": 429,
    "overloaded_error": 529,
}


class Problem(Exception):
    """`kind`: "down" and "busy" may be gone in a moment or on another server, "refused" stays.

    `failed` is what the caller hears if nothing helps; `wait_s` is what the server asked for.
    `is_final`: to ask again, here or elsewhere, might cost what this has cost already.
    """

    def __init__(
        self, kind: Kind, failed: Failed, wait_s: float | None = None, *, is_final: bool = False
    ) -> None:
        super().__init__(failed.message)
        self.kind = kind
        self.failed = failed
        self.wait_s = wait_s
        self.is_final = is_final


def down(host: str, how: str) -> Problem:
    return Problem("down", Failed(UNAVAILABLE, f"{host} {how}.", retry_after_s=5.0))


def not_understood(host: str) -> Problem:
    return Problem("refused", Failed(REFUSED, f"{host} answers in a form that is not understood."))


def of_response(
    host: str, status: int, retry_after: str | None, body: bytes, key: str = ""
) -> Problem:
    """The problem behind an HTTP status other than 200. Its words are passed on without the key."""
    said, code, param = _read_error(body, key)
    wait_s = _seconds(retry_after)
    if status == 429 or (status in _FULL and wait_s is not None):
        retry_after_s = 5.0 if wait_s is None else max(wait_s, 0.1)
        busy = Failed("upstream_busy", f"{host} has no room now. {said}".strip(), retry_after_s)
        return Problem("busy", busy, wait_s)
    if status >= 500 or status == 408:
        return down(host, f"failed with HTTP {status}" + (f": {said}" if said else ""))
    if status in (401, 403):
        # Its words are not passed on: they may quote the key.
        return Problem("refused", Failed(REFUSED, f"{host} refuses Vitrine's key (HTTP {status})."))
    if status == 404:
        return Problem("refused", Failed(REFUSED, f"{host} has no such model. {said}".strip()))
    if code == ContextTooLong.code or status == 413 or _LONG_CONTEXT.search(said):
        message = f"{ContextTooLong.code}: {host} says: {said or 'too long'}"
        return Problem("refused", Failed(ContextTooLong.code, message))
    if status in (400, 422):
        own = InvalidParameter.code if param else RequestError.code
        message = f"{host} refuses the request: {said or f'HTTP {status}'}"
        return Problem("refused", Failed(own, message, param=param))
    return Problem(
        "refused", Failed(REFUSED, f"{host} answered with HTTP {status}. {said}".strip())
    )


def of_event(host: str, error: Any, key: str = "") -> Problem:
    """The problem that a server tells of in the middle of its stream: as of the status that it names,
    by number or by word."""
    body = json.dumps({"error": error}).encode()
    said, code, _ = _read_error(body, key)
    status = _status_named(error)
    if status not in _FULL and (code == ContextTooLong.code or _LONG_CONTEXT.search(said)):
        status = 400
    if status is None:
        return down(host, f"broke off: {said}" if said else "broke off with an error")
    # An event has no Retry-After, without which some of these would count as a failure.
    return of_response(host, status, "5" if status in _FULL else None, body, key)


def _status_named(error: Any) -> int | None:
    """By the code or, where that is a word for something else, by the type."""
    if not isinstance(error, dict):
        return None
    for name in (str(error.get("code")), str(error.get("type"))):
        if _STATUS.fullmatch(name):
            return int(name)
        if name in _STATUS_OF:
            return _STATUS_OF[name]
    return None


def _read_error(body: bytes, key: str) -> tuple[str, str, str | None]:
    """(message, code, param) of OpenAI's and Anthropic's error bodies, and of plain text."""

    def said(words: Any) -> str:
        text = str(words)
        return (text.replace(key, "…") if key else text)[:_MAX_SAID_CHARS]

    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode(errors="replace").strip()
        return ("" if text.startswith("<") else said(text)), "", None
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return said(error), "", None
    message = error.get("message") or error.get("detail") or ""
    param = error.get("param")
    code = error.get("code") or error.get("type") or ""
    is_name = isinstance(param, str) and param.replace(".", "").replace("_", "").isalnum()
    return said(message), str(code), param if is_name else None


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds from now. Its other form, a date, is what proxies say in maintenance."""
    try:
        seconds = float(retry_after) if retry_after else None
    except ValueError:
        seconds = _seconds_to(str(retry_after))
    return seconds if seconds is None or 0 <= seconds < 1e6 else None


def _seconds_to(date: str) -> float | None:
    """0 for one that has passed, None for what is none."""
    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    if then.tzinfo is None:  # a zone of -0000: UTC, by some clock
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
