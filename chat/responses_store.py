"""Responses that are kept, so that they can be looked up and gone on from.

Rows are seen by their owner alone; another's id is as missing as one that never was.
"""

import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db import connection
from django.db.models import (
    BigIntegerField,
    Exists,
    F,
    Func,
    OuterRef,
    QuerySet,
    Sum,
    Window,
)
from django.utils import timezone
from redis.exceptions import RedisError

from chat.api_errors import ApiError
from chat.ids import uuid7
from chat.models import StoredResponse
from chat.responses_schemas import (
    CallItem,
    CallOutputItem,
    FileSearchItem,
    ImagePartIn,
    MessageItem,
    ReasoningItem,
    RefusalIn,
    TextPartIn,
)
from chat.storable import storable_value

KEEP = timedelta(days=30)  # OpenAI's own
MAX_THREAD = 1000
MAX_KEPT_BYTES = 2**30  # of one user
MEASURE_EVERY_S = 60
MEASURE_PAUSE = 50  # times as long as it took, at least
Value = dict[str, Any]


_WAY = """
WITH RECURSIVE way AS (
    SELECT id, previous, 0 AS num_behind FROM chat_storedresponse
    WHERE id = %(id)s AND owner_id = %(owner)s
    UNION ALL
    SELECT before.id, before.previous, num_behind + 1
    FROM chat_storedresponse before JOIN way ON before.id = way.previous
    WHERE before.owner_id = %(owner)s AND num_behind < %(most)s
)
SELECT id FROM way ORDER BY num_behind DESC
"""


# Threads for which there is no room behind newer ones, the newest first, and what those newer ones take.
_BEYOND = """
SELECT thread, upto - taken FROM (
    SELECT thread, taken, sum(taken) OVER (ORDER BY newest DESC, thread DESC) AS upto FROM (
        SELECT thread, max(created_at) AS newest,
            sum(pg_column_size(input) + pg_column_size(body)) AS taken
        FROM chat_storedresponse WHERE owner_id = %s GROUP BY thread
    ) AS threads
) AS used WHERE upto > %s ORDER BY upto
"""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A response to go on from, its thread, and all items up to its end, oldest first."""

    id: UUID
    thread: UUID
    items: list[Value]


def new_id() -> str:
    return f"resp_{uuid7().hex}"


def new_item_id(prefix: str, response_id: str) -> str:
    """It tells of which response the item is, so that a reference to it finds the row."""
    return f"{prefix}_{response_id.removeprefix('resp_')}{secrets.token_hex(6)}"


def _row_id_of_item(id_: str) -> UUID | None:
    return _row_id(id_.partition("_")[2][:32])


def _row_id(id_: str) -> UUID | None:
    """Nonsense is as missing as an unknown id."""
    try:
        return UUID(id_.removeprefix("resp_"))
    except ValueError:
        return None


def find(user: Any, id_: str) -> StoredResponse:
    """One query. Raises ApiError: 404."""
    row_id, rows = _row_id(id_), StoredResponse.objects.filter(owner_id=user.pk)
    row = rows.filter(pk=row_id).first() if row_id else None
    if row is None:
        raise ApiError(404, "not_found", f"There is no response with the id '{id_}'.")
    return row


def delete(user: Any, id_: str) -> None:
    find(user, id_).delete()


def save(user: Any, body: Value, items: list[Any], previous: Earlier | None) -> None:
    """Keep a response that has ended, and let go of what the user has not used for long."""
    row_id = _row_id(body["id"])
    assert row_id is not None
    StoredResponse.objects.create(
        pk=row_id,
        owner_id=user.pk,
        thread=previous.thread if previous else row_id,
        previous=previous.id if previous else None,
        input=storable_value([_as_value(item, body["id"]) for item in items]),
        body=storable_value(_without_results(body)),
    )
    rows = StoredResponse.objects.filter(owner_id=user.pk)
    forget_old(rows)
    if _is_to_be_measured(user):
        began_s = monotonic()
        _forget_oldest(user, rows)
        _measure_later(user, monotonic() - began_s)


def _without_results(body: Value) -> Value:
    """What searches have found: documents may be taken back, and what they said with them."""
    return body | {
        "output": [
            item | {"results": None} if item["type"] == "file_search_call" else item
            for item in body["output"]
        ]
    }


def _is_to_be_measured(user: Any) -> bool:
    """Now and then: it looks at every row. Each time while Redis is away."""
    try:
        return cache.add(_measured_key(user), 1, timeout=MEASURE_EVERY_S)
    except (RedisError, OSError):
        return True


def _measure_later(user: Any, took_s: float) -> None:
    """Of somebody with very many rows the more seldom: a part of the time, however many they are."""
    wait_s = int(took_s * MEASURE_PAUSE)
    if wait_s > MEASURE_EVERY_S:
        with suppress(RedisError, OSError):
            cache.set(_measured_key(user), 1, timeout=wait_s)


def _measured_key(user: Any) -> str:
    return f"responses-measured-{user.pk}"


def _forget_oldest(user: Any, rows: QuerySet[StoredResponse]) -> None:
    """Of one user's, where they take too much together. Nobody is refused an answer for what an earlier
    one has left behind. Threads go as a whole, those first that nobody has gone on with for longest; of
    one that takes too much alone the oldest turns."""
    num_bytes = _size("input") + _size("body")
    # A sum takes a fourth of what threads in their order take, of which there may be a million.
    if (rows.aggregate(taken=Sum(num_bytes))["taken"] or 0) <= MAX_KEPT_BYTES:
        return
    with connection.cursor() as cursor:
        cursor.execute(_BEYOND, [user.pk, MAX_KEPT_BYTES])
        beyond = cursor.fetchall()
    gone = [thread for thread, _ in beyond]
    if beyond and not beyond[0][1]:
        newest = rows.filter(thread=gone.pop(0))
        behind = Window(Sum(num_bytes), order_by=[F("created_at").desc(), F("pk").desc()])
        oldest = newest.annotate(upto=behind).filter(upto__gt=MAX_KEPT_BYTES)
        newest.filter(pk__in=list(oldest.values_list("pk", flat=True))).delete()
    rows.filter(thread__in=gone).delete()


def _size(column: str) -> Func:
    """On disk, compressed; what is large is not read for it."""
    return Func(F(column), function="pg_column_size", output_field=BigIntegerField())


def forget_old(rows: Any = None) -> None:
    """A thread is kept whole for as long as it is gone on with: its first turn is a part of its last."""
    rows = StoredResponse.objects.all() if rows is None else rows
    oldest = timezone.now() - KEEP
    younger = StoredResponse.objects.filter(
        owner_id=OuterRef("owner_id"), thread=OuterRef("thread"), created_at__gte=oldest
    )
    rows.filter(~Exists(younger), created_at__lt=oldest).delete()


def earlier(user: Any, id_: str) -> Earlier:
    """Two queries, which read nothing of what else goes on from the same first response.

    Raises ApiError where one on the way is missing: what was said is not made up.
    """
    way = _way_to(user, _row_id(id_))
    rows = StoredResponse.objects.filter(owner_id=user.pk, pk__in=way)
    found = {
        pk: (previous, thread, [*asked, *output])
        for pk, previous, thread, asked, output in rows.values_list(
            "pk", "previous", "thread", "input", "body__output"
        )
    }
    is_whole = bool(way) and way[0] in found and found[way[0]][0] is None
    if not is_whole or len(way) > MAX_THREAD or len(found) < len(way):
        message = f"There is no response with the id '{id_}' that can be gone on from."
        raise ApiError(404, "previous_response_not_found", message, "previous_response_id")
    items = [item for pk in way for item in found[pk][2]]
    return Earlier(way[-1], found[way[-1]][1], items)


def _way_to(user: Any, row_id: UUID | None) -> list[UUID]:
    """From the first that is there, but of no more than there may be."""
    with connection.cursor() as cursor:
        cursor.execute(_WAY, {"id": row_id, "owner": user.pk, "most": MAX_THREAD})
        return [pk for (pk,) in cursor.fetchall()]


def items_of(user: Any, ids: Collection[str]) -> dict[str, Value]:
    """What was asked or answered in responses that are kept, by its id. One query.

    Raises ApiError: 404, for the first that is not there.
    """
    row_ids = {row_id for id_ in ids if (row_id := _row_id_of_item(id_))}
    rows = StoredResponse.objects.filter(owner_id=user.pk, pk__in=row_ids)
    found: dict[str, Value] = {
        item["id"]: item
        for asked, output in rows.values_list("input", "body__output")
        for item in (*asked, *output)
    }
    for id_ in ids:
        if id_ not in found:
            raise ApiError(404, "not_found", f"There is no item with the id '{id_}'.", "input")
    return found


def _as_value(item: Any, response_id: str) -> Value:
    """An item of the input as it is listed later, with an id. What no model reads of it, and nothing
    bounds, is not kept."""

    def id_of(prefix: str) -> str:
        return item.id or new_item_id(prefix, response_id)

    match item:
        case MessageItem():
            return {
                "type": "message",
                "id": id_of("msg"),
                "role": item.role,
                "status": "completed",
                "content": _contents(item),
            }
        case CallItem():
            value = item.model_dump(include={"type", "call_id", "name", "arguments"})
            return value | {"id": id_of("fc"), "status": "completed"}
        case CallOutputItem():
            value = {"type": item.type, "call_id": item.call_id, "output": item.text}
            return value | {"id": id_of("fco"), "status": "completed"}
        case FileSearchItem():
            value = {"type": item.type, "queries": item.queries, "results": None}
            return value | {"id": item.id, "status": item.status or "completed"}
        case ReasoningItem():
            value = {"type": item.type, "summary": [], "content": []}
            return value | {"id": id_of("rs")}
    raise AssertionError


def _contents(item: MessageItem) -> list[Value]:
    parts = item.content
    if isinstance(parts, str):
        parts = [TextPartIn(type="text", text=parts)]
    contents: list[Value] = []
    for part in parts:
        if isinstance(part, RefusalIn):
            contents.append({"type": "refusal", "refusal": part.refusal})
        elif isinstance(part, ImagePartIn):
            image = {"image_url": part.image_url, "detail": part.detail or "auto", "file_id": None}
            contents.append({"type": "input_image", **image})
        elif item.role == "assistant":
            rest: Value = {"annotations": [], "logprobs": []}
            contents.append({"type": "output_text", "text": part.text, **rest})
        else:
            contents.append({"type": "input_text", "text": part.text})
    return contents
