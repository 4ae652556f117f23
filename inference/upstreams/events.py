"""What an answer comes in: server-sent events, whatever a server calls them, or one body of JSON."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import httpx2

from inference.upstreams.client import beginning_of

MAX_ANSWER_BYTES = 64 * 2**20  # of events, which take some fifty times their text
# OpenAI's own clients look at none of these; some servers and proxies name no type, or the wrong one.
_OF_EVENTS = ("text/event-stream", "", "text/plain", "application/octet-stream")


async def events_of(
    response: httpx2.Response,
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """The events of an answer; one that is not streamed is a single one. Raises httpx2.SSEError for
    what is neither."""
    kind, _, _ = response.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if kind == "application/json":
        body = await beginning_of(response, MAX_ANSWER_BYTES)
        yield httpx2.ServerSentEvent(data=body.decode("utf-8-sig", "replace"))
        return
    if kind not in _OF_EVENTS:
        raise httpx2.SSEError(f"no stream of events: {kind}")
    response.headers["content-type"] = "text/event-stream"
    response.encoding = "utf-8-sig"  # what the standard has events in, whatever the header says
    source = aiter(httpx2.EventSource(response, max_event_size=MAX_ANSWER_BYTES))
    # It is a generator, which has to be closed, though its type does not say so.
    async with aclosing(cast("AsyncGenerator[httpx2.ServerSentEvent, None]", source)) as events:
        async for event in events:
            yield event
