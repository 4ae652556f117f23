"""Streams that have nothing to say for long."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from webapp import keep_alive
from webapp.keep_alive import COMMENT, KeepAlive

Say = Callable[[bytes], Awaitable[None]]
EVENT = b"data: x\n\n"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep_alive, "SILENCE_S", 0.05)


async def sent(
    script: Callable[[Say], Awaitable[None]],
    kind: bytes = b"text/event-stream",
    taking_s: float = 0.0,
) -> list[bytes]:
    """What goes out where an application does this with its response; each message takes its time."""
    bodies: list[bytes] = []
    num_sending = 0

    async def send(message: Any) -> None:
        nonlocal num_sending
        num_sending += 1
        assert num_sending == 1, "one message at a time"
        await asyncio.sleep(taking_s)
        num_sending -= 1
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    async def application(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"Content-Type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def say(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        await script(say)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive() -> None:
        raise AssertionError("nobody listens")

    await KeepAlive(application)({"type": "http"}, receive, send)
    await asyncio.sleep(0.12)
    return bodies


async def test_a_silent_stream_gives_signs_of_life_and_ends_with_its_end() -> None:
    async def script(say: Say) -> None:
        await say(EVENT)
        await asyncio.sleep(0.3)
        await say(EVENT)

    bodies = await sent(script)
    assert bodies[0] == bodies[-2] == EVENT
    assert bodies[-1] == b""
    between = bodies[1:-2]
    assert set(between) == {COMMENT}
    assert 2 <= len(between) <= 6


async def test_a_stream_that_speaks_needs_none() -> None:
    async def script(say: Say) -> None:
        for _ in range(15):
            await say(EVENT)
            await asyncio.sleep(0.01)

    assert COMMENT not in await sent(script)


async def test_only_streams_of_events_have_comments() -> None:
    async def script(say: Say) -> None:
        await say(b"PK")
        await asyncio.sleep(0.15)

    assert await sent(script, kind=b"application/zip") == [b"PK", b""]


async def test_a_reader_who_takes_nothing_is_sent_nothing_more() -> None:
    """And an event that goes out in pieces is not torn."""

    async def script(say: Say) -> None:
        await say(EVENT[:4])
        await say(EVENT[4:])

    assert await sent(script, taking_s=0.12) == [EVENT[:4], EVENT[4:], b""]


async def test_an_application_that_fails_leaves_no_timer() -> None:
    async def script(say: Say) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await sent(script)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.sleep(0.12)
    assert asyncio.all_tasks() - {asyncio.current_task()} <= others
