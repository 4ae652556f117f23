"""Idempotency-Key: a request that is sent again gets the answer that it got, and is not run twice.

A key is its user's, for one route, for a day. A row is put down before the work begins, and only one
can be: whoever comes second is told to wait (409, which OpenAI's clients try again by themselves).
Only what succeeded is given again; what failed leaves the key free, and so does what is too large to
be kept, alone or with all that its user has had kept. Streams are not kept.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial, wraps
from typing import Any, TypeVar

from django.core.cache import cache
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from redis.exceptions import RedisError

from chat.api_errors import ApiError
from chat.db import in_db
from chat.models import KeptAnswer
from chat.persisting import AWAY, go_on_trying
from chat.shielded import done_or_undone, to_its_end

logger = logging.getLogger(__name__)

KEEP = timedelta(hours=24)
ABANDONED = timedelta(minutes=15)
"""Longer than any answer takes: the process that wrote it has died."""
MAX_KEY_CHARS = 255
MAX_BODY_BYTES = 2**20  # thousands of vectors have more, and are sooner computed again than kept
MAX_KEPT_BYTES = 2**28  # of one user, in a day
REPLAYED = "Idempotent-Replayed"

Body = TypeVar("Body")
View = Callable[[HttpRequest, Any], Awaitable[HttpResponseBase]]


def idempotent(view: View) -> Any:
    """For a view of a POST that answers JSON, or a stream where the body's `stream` is true."""

    @wraps(view)
    async def wrapped(request: HttpRequest, data: Any) -> HttpResponseBase:
        key = request.headers.get("Idempotency-Key", "")
        if not key or getattr(data, "stream", False):
            return await view(request, data)
        if len(key) > MAX_KEY_CHARS or not key.isprintable():
            message = f"Idempotency-Key: at most {MAX_KEY_CHARS} printable characters."
            raise ApiError(400, "invalid_value", message)
        digest = hashlib.sha256(request.body).hexdigest()
        claiming = in_db(_claim)(request.user, request.path, key, digest)
        row, is_new = await done_or_undone(claiming, _disclaim)
        if not is_new:
            return _again(row, digest)
        return await _run(view, request, data, row)

    return wrapped


def forget_old(rows: Any = None) -> None:
    rows = KeptAnswer.objects.all() if rows is None else rows
    rows.filter(created_at__lt=timezone.now() - KEEP).delete()


async def _run(view: View, request: HttpRequest, data: Any, row: KeptAnswer) -> HttpResponseBase:
    response: HttpResponseBase | None = None
    try:
        response = await view(request, data)
    finally:
        # A client that went away has cancelled this, and its key has to be free again.
        await to_its_end(_settle(row, response))
    return response


async def _settle(row: KeptAnswer, response: HttpResponseBase | None) -> None:
    """Where the database is away, as soon as it is back: whoever asked has their answer all the same."""
    keep = partial(_keep, row, response)
    try:
        await keep()
    except AWAY:
        logger.warning("the answer to a key cannot be kept, trying again", exc_info=True)
        go_on_trying(keep, "an answer is not kept for its Idempotency-Key")
    except DatabaseError:
        logger.exception("the answer to a key cannot be kept")


async def _keep(row: KeptAnswer, response: HttpResponseBase | None) -> None:
    """Of what failed nothing is kept, and nothing of what is too large."""
    right = response if isinstance(response, HttpResponse) and response.status_code < 300 else None
    await in_db(_write)(row, right)


def _write(row: KeptAnswer, response: HttpResponse | None) -> None:
    kept = KeptAnswer.objects.filter(pk=row.pk)
    if response is not None and _has_room(row.owner_id, len(response.content)):
        kept.update(status=response.status_code, body=response.content)
    else:
        kept.delete()


def _has_room(owner_id: Any, num_bytes: int) -> bool:
    """Counted in Redis, for a day from the first on: the sum of a day's rows would be taken for each.
    While Redis is away all have."""
    counted = f"kept-answers-{owner_id}"
    if num_bytes > MAX_BODY_BYTES:
        return False
    try:
        cache.add(counted, 0, timeout=KEEP.total_seconds())
        return bool(cache.incr(counted, num_bytes) <= MAX_KEPT_BYTES)
    except (RedisError, OSError, ValueError):  # the last one: its day has just ended
        return True


async def _disclaim(claimed: tuple[KeptAnswer, bool]) -> None:
    """Its caller has gone before anything began."""
    row, is_new = claimed
    if is_new:
        await _settle(row, None)


def _claim(user: Any, route: str, key: str, digest: str) -> tuple[KeptAnswer, bool]:
    """The row of a key, and whether it was put down now."""
    mine = KeptAnswer.objects.filter(owner_id=user.pk)
    forget_old(mine)
    with transaction.atomic():
        abandoned = mine.filter(status=None, created_at__lt=timezone.now() - ABANDONED)
        abandoned.filter(route=route, key=key).delete()
        return mine.get_or_create(
            route=route, key=key, owner_id=user.pk, defaults={"request_hash": digest}
        )


def _again(row: KeptAnswer, digest: str) -> HttpResponse:
    """Raises ApiError."""
    if row.request_hash != digest:
        message = "This Idempotency-Key was used for another request; take a new one."
        raise ApiError(422, "idempotency_key_reused", message)
    if row.status is None:
        message = "The same request is being answered; ask again for its answer."
        raise ApiError(409, "idempotency_key_in_use", message, retry_after_s=1.0)
    response = HttpResponse(bytes(row.body), status=row.status, content_type="application/json")
    response[REPLAYED] = "true"
    return response
