"""Streams merged into one: everything comes, in each stream's order, and nothing is left open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from chat.merging import merged


class Streams:
    """Streams of numbers that know whether they were closed."""

    def __init__(self, *lengths: int, fails_at: int = -1) -> None:
        self.closed = [False] * len(lengths)
        self.all = [self._stream(i, length, fails_at) for i, length in enumerate(lengths)]

    async def _stream(self, index: int, length: int, fails_at: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(length):
                await asyncio.sleep(0)
                if index and number == fails_at:
                    raise RuntimeError("broken")
                yield number
        finally:
            await asyncio.sleep(0)
            self.closed[index] = True


@pytest.mark.parametrize("lengths", [(5,), (3, 0, 7), (40,) * 16])
async def test_everything_comes_in_order(lengths: tuple[int, ...]) -> None:
    streams = Streams(*lengths)
    found: list[list[int]] = [[] for _ in lengths]
    async for index, number in merged(streams.all):
        found[index].append(number)
    assert found == [list(range(length)) for length in lengths]
    assert all(streams.closed)


@pytest.mark.parametrize("lengths", [(50,), (50, 50, 50)])
async def test_leaving_early_closes_all(lengths: tuple[int, ...]) -> None:
    streams = Streams(*lengths)
    async with asyncio.timeout(5), aclosing(merged(streams.all)) as items:
        async for _, number in items:
            if number == 3:
                break
    assert all(streams.closed)


async def test_an_exception_comes_through_at_once_and_closes_the_others() -> None:
    streams = Streams(10_000, 10, fails_at=2)
    num_heard = 0
    with pytest.raises(RuntimeError, match="broken"):
        async for _ in merged(streams.all):
            num_heard += 1
    assert num_heard < 20
    assert all(streams.closed)
