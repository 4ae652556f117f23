"""Events of answers as an HTTP answer: what fails before the engine computes is still a status."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.http import HttpResponse

from chat.api_errors import Respond, api_error, status_of
from chat.events import Event, Failed, Phase, Refused, Started
from chat.spans import Span

Numbered = tuple[int, Event]
"""An event and the index of the choice that it belongs to."""


async def opened(
    events: AsyncGenerator[Numbered, None],
) -> tuple[list[Numbered], Failed | Refused | None]:
    """The first events, up to where the engine computes; or why it will not, and all is closed.

    Clients try again after a 503; an error inside a 200 ends their program.
    """
    first = [await anext(events)]
    while _is_waiting(first[-1][1]):
        first.append(await anext(events))
    if isinstance(end := first[-1][1], Failed | Refused):
        await events.aclose()
        return first, end
    return first, None


async def chained(
    first: list[Numbered], rest: AsyncGenerator[Numbered, None]
) -> AsyncGenerator[Numbered, None]:
    async with aclosing(rest):
        for event in first:
            yield event
        async for event in rest:
            yield event


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


def _is_waiting(event: Event) -> bool:
    """Whether the engine has not begun to compute: the model loads, the request is queued, or it is
    another server's turn to speak."""
    if isinstance(event, Phase):
        return event.phase in ("loading", "queued", "asking")
    return isinstance(event, Started | Span)
