"""Events of answers as an HTTP answer: what fails before the engine computes is still a status."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from django.http import HttpResponse

from chat.api_errors import Respond, api_error, status_of
from chat.errors import ChatError
from chat.events import Event, Failed, Phase, Refused, Started
from chat.spans import Span
from inference import EngineError

Numbered = tuple[int, Event]
"""An event and the index of the choice that it belongs to."""


PATIENCE_S = 15.0
"""How long whoever waits for a stream hears nothing at all: many a proxy hangs up after a minute. Then
it begins, and is kept alive."""


class Begun:
    """The events of answers, the first of them already on their way. To be closed by who reads them.

    `opening` is done when the engine computes. What it says with that is read as well: so it can go with
    the beginning of a response.
    """

    def __init__(self, events: AsyncGenerator[Numbered, None]) -> None:
        self._events = events
        self._first: list[Numbered] = []
        self.last: Event | None = None
        """Of the events up to the opening, what came last by now."""
        self.opening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read_first())

    @property
    def has_news(self) -> bool:
        """Whether something that was said is there already."""
        return bool(self._first) and _is_said(self._first[-1][1])

    async def __aiter__(self) -> AsyncIterator[Numbered]:
        try:
            await asyncio.wait({self.opening})
            self.opening.result()
        except (ChatError, EngineError) as error:
            yield 0, Failed(error.code, str(error), error.retry_after_s)
            return
        num_told = 0
        while num_told < len(self._first) or not self._reading.done():
            if num_told == len(self._first):
                await asyncio.wait({self._reading})
            else:
                yield self._first[num_told]
                num_told += 1
        self._reading.result()
        async for event in self._events:
            yield event

    async def aclose(self) -> None:
        if not self._reading.done():
            self._reading.cancel()
            await asyncio.wait({self._reading})
        for ended in (self._reading, self.opening):
            if ended.done() and not ended.cancelled():
                ended.exception()  # which nobody has to hear any more
        await self._events.aclose()

    async def _read_first(self) -> None:
        try:
            async for numbered in self._events:
                self._first.append(numbered)
                if not self.opening.done():
                    self.last = numbered[1]
                    if not _is_waiting(self.last):
                        self.opening.set_result(None)
                if _is_said(numbered[1]):
                    break
        except asyncio.CancelledError:
            self.opening.cancel()  # also where something within was cancelled, and not this
            raise
        except BaseException as error:
            if self.opening.done():
                raise
            self.opening.set_exception(error)
        if not self.opening.done():
            self.opening.set_result(None)


async def opened(events: AsyncGenerator[Numbered, None]) -> tuple[Begun, Failed | Refused | None]:
    """The events, once the engine computes or has been waited for long enough; or why it will not, and
    all is closed.

    Clients try again after a 503; an error inside a 200 ends their program. But a 200 that comes too
    late is a 504 of a proxy's.
    """
    begun = Begun(events)
    try:
        await asyncio.wait({begun.opening}, timeout=PATIENCE_S)
    except asyncio.CancelledError:
        await begun.aclose()
        raise
    if not begun.opening.done():
        return begun, None
    begun.opening.result()
    if isinstance(begun.last, Failed | Refused):
        await begun.aclose()
        return begun, begun.last
    return begun, None


def error_response(
    end: Failed | Refused, *, prompt: str = "messages", respond: Respond = api_error
) -> HttpResponse:
    """`prompt` is what this body calls its messages, or what it has in place of them."""
    retry_after_s = end.retry_after_s if isinstance(end, Failed) else None
    param = end.param if isinstance(end, Failed) else None
    if end.code == "context_length_exceeded" or param == "messages":
        param = prompt
    return respond(
        status_of(end.code), end.code, end.message, param=param, retry_after_s=retry_after_s
    )


def _is_said(event: Event) -> bool:
    return not isinstance(event, Phase | Started | Span)


def _is_waiting(event: Event) -> bool:
    """Whether the engine has not begun to compute: the model loads, the request is queued, or it is
    another server's turn to speak."""
    if isinstance(event, Phase):
        return event.phase in ("loading", "queued", "asking")
    return isinstance(event, Started | Span)
