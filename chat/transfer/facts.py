"""What messages and chats of a file tell beside what is said: numbers, times, how an answer came about.

Prompts, pages and lists rely upon their shapes, long after the import. Fields that nobody knows are left
out; what has another shape than rows have it raises ValueError or OverflowError.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import partial
from math import isfinite
from typing import Any

Json = dict[str, Any]
Check = Callable[[Any], bool]
MAX_VERSION = 2**30  # far from the end of its column: each change adds one


def in_utc(moment: datetime) -> datetime:
    """One without a time zone is taken for it. None is so near to the first or the last year that there
    is that a time zone could lead out of them."""
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not MINYEAR < moment.year < MAXYEAR:
        raise ValueError
    return moment


def version_in(value: int) -> int:
    if value > MAX_VERSION:
        raise ValueError
    return value


def _fields_in(value: Any, checks: Mapping[str, Check], needed: Sequence[str] = ()) -> Json | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() >= set(needed):
        raise ValueError
    known = {name: value[name] for name in checks if name in value}
    if not all(checks[name](one) for name, one in known.items()):
        raise ValueError
    return known


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and bool(in_utc(datetime.fromisoformat(value)))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


_LEFT_OUT = {
    "before": _is_text,
    "num_messages": _is_count,
    "summary": _is_text_or_none,
}  # what policies stop is judged anew
_ERROR = dict.fromkeys(("code", "message", "stage", "decision"), _is_text)
_FROM_CACHE = {"asked_at": _is_time, "question": _is_text, "similarity": _is_number}
_USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens")
_TIMINGS = (
    *("queued_ms", "prefill_ms", "ttft_ms", "thinking_ms", "decode_ms", "tools_ms"),
    *("total_ms", "stop_ms", "engine_ms"),
)

left_out_in = partial(_fields_in, checks=_LEFT_OUT, needed=("before", "num_messages"))
error_in = partial(_fields_in, checks={**_ERROR, "trace_id": _is_text_or_none})
from_cache_in = partial(_fields_in, checks=_FROM_CACHE, needed=tuple(_FROM_CACHE))
usage_in = partial(_fields_in, checks=dict.fromkeys(_USAGE, _is_count))
timings_in = partial(_fields_in, checks=dict.fromkeys(_TIMINGS, _is_number))
