"""What messages of a temporary chat, or of a file, are and were answered from, as it is brought along.

None of it is believed: a passage is a place, and what stands there is read anew in the scope of who
asks, so that a forged one shows nothing that its reader could not open.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from chat.errors import BadFrame
from chat.events import Found
from chat.sources import MAX_PICKED, Picked
from chat.storable import is_storable

MAX_EXCERPTS = 1_000
MAX_EXCERPT_CHARS = 1_000_000  # of one answer, together
_MAX_PLACE = 2**31 - 2  # Postgres counts from 1

Json = dict[str, Any]
Check = Callable[[Any], bool]


def picked_in(value: Any) -> Picked:
    """Of a question: {"collections": [{"id", …}], "documents": [{"id", …}]}. Raises BadFrame."""
    if value is None:
        return Picked()
    _require(isinstance(value, dict), "'sources' of a message is an object.")
    return Picked(_ids(value.get("collections")), _ids(value.get("documents")))


def named_in(value: Any) -> Json | None:
    """The same as it is kept, with the names that it had. Raises BadFrame."""
    picked_in(value)
    if value is None:
        return None
    return {kind: _names(value.get(kind)) for kind in ("collections", "documents")}


def found_in(value: Any) -> Json | None:
    """Of an answer, as events.Found has told it. Raises BadFrame."""
    if value is None:
        return None
    _require(isinstance(value, dict), "'found' of a message is an object.")
    query, is_whole = value.get("query", ""), value.get("is_whole", False)
    nums = [value.get(name, 0) for name in ("num_waiting", "num_failed")]
    is_told = all(type(num) is int and 0 <= num <= MAX_PICKED for num in nums)
    is_told = is_told and _is_text(query) and isinstance(is_whole, bool)
    _require(is_told, "'found' is not as it was told.")
    return Found(query, tuple(excerpts_in(value.get("excerpts"))), is_whole, (), *nums).kept()


def excerpts_in(values: Any) -> list[Json]:
    """As JSON of Excerpt. Raises BadFrame."""
    _require(isinstance(values, list), "'excerpts' is a list.")
    _require(len(values) <= MAX_EXCERPTS, f"There are at most {MAX_EXCERPTS:,} excerpts.")
    found = [_excerpt(value) for value in values]
    num_chars = sum(one["end"] - one["start"] for one in found)
    _require(num_chars <= MAX_EXCERPT_CHARS, "The excerpts are too long.")
    return found


def _excerpt(value: Any) -> Json:
    is_one = isinstance(value, dict) and all(
        check(value.get(name)) for name, check in _FIELDS.items()
    )
    _require(is_one and value["start"] <= value["end"], "An excerpt is not as it was told.")
    known = {name: value[name] for name in _FIELDS}
    if "is_sample" in value:
        known["is_sample"] = value["is_sample"] is True
    return known


def _ids(values: Any) -> tuple[UUID, ...]:
    given = values if isinstance(values, list) else []
    is_fine = len(given) <= MAX_PICKED and all(
        isinstance(one, dict) and _is_id(one.get("id")) for one in given
    )
    _require(is_fine, "'sources' of a message names collections and documents.")
    return tuple(UUID(one["id"]) for one in given)


def _names(values: Any) -> list[Json]:
    given = values if isinstance(values, list) else []
    names = [one.get("name") for one in given]
    _require(all(map(_is_text, names)), "'sources' of a message have names.")
    return [{"id": one["id"], "name": one["name"]} for one in given]


def _require(is_fine: bool, message: str) -> None:
    if not is_fine:
        raise BadFrame(message)


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_storable(value)


def _is_place(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_PLACE


def _are_chunks(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


_FIELDS: dict[str, Check] = {
    "number": _is_place,
    "document": _is_id,
    "version": _is_id,
    "collection": _is_id,
    "name": _is_text,
    "start": _is_place,
    "end": _is_place,
    "first_page": _is_place,
    "last_page": _is_place,
    "page_label": _is_text,
    "context": _is_text,
    "chunks": _are_chunks,
}
