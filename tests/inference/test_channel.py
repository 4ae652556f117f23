"""The web process's end of a worker's socket."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from inference.channel import AsyncChannel, BlockingChannel


class _Counted(asyncio.StreamWriter):
    """Of how many calls what was sent has taken."""

    num_writes = 0

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.num_writes += 1
        super().write(data)


@pytest.fixture
async def ends() -> AsyncIterator[tuple[AsyncChannel, BlockingChannel]]:
    ours, theirs = socket.socketpair()
    channel = await AsyncChannel.open(ours)
    channel._writer.__class__ = _Counted
    yield channel, BlockingChannel(theirs)
    channel.close()
    theirs.close()


async def test_what_is_sent_in_one_turn_goes_together_and_in_order(
    ends: tuple[AsyncChannel, BlockingChannel],
) -> None:
    channel, worker = ends
    sent = [("one", number) for number in range(64)]
    for value in sent:
        channel.send(value)
    received = [await asyncio.to_thread(worker.receive) for _ in sent]
    assert received == sent
    assert channel._writer.num_writes == 1  # type: ignore[attr-defined]
    channel.send("later")
    assert await asyncio.to_thread(worker.receive) == "later"


async def test_what_was_sent_before_the_end_arrives(
    ends: tuple[AsyncChannel, BlockingChannel],
) -> None:
    channel, worker = ends
    channel.send("the last")
    channel.close()
    assert await asyncio.to_thread(worker.receive) == "the last"
    with pytest.raises(EOFError):
        await asyncio.to_thread(worker.receive)
