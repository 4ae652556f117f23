"""Several asynchronous streams as one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")
_Queue = asyncio.Queue[tuple[int, T] | Exception | None]


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """What the streams yield, as it comes, with the index of its stream.

    Closing it early closes all of them; an exception in one is raised here and does the same.
    """
    if len(streams) == 1:  # no task, no queue: the usual case costs nothing
        async with aclosing(streams[0]) as stream:
            async for only in stream:
                yield 0, only
        return
    # Each has one item on its way: who reads slowly slows the streams, and no stream can crowd out
    # another, as it would from a queue with a bound.
    queue: _Queue[T] = asyncio.Queue()
    taken = [asyncio.Event() for _ in streams]
    tasks = [
        asyncio.create_task(_pump(index, stream, queue, taken[index]))
        for index, stream in enumerate(streams)
    ]
    num_open = len(tasks)
    try:
        while num_open:
            match await queue.get():
                case None:
                    num_open -= 1
                case Exception() as error:
                    raise error
                case (index, _) as item:
                    yield item
                    taken[index].set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    index: int, stream: AsyncGenerator[T, None], queue: "_Queue[T]", taken: asyncio.Event
) -> None:
    """Ends with a None or with the stream's exception; cancelled, with nothing: nobody reads."""
    try:
        async with aclosing(stream):
            async for item in stream:
                queue.put_nowait((index, item))
                await taken.wait()
                taken.clear()
    except Exception as error:
        queue.put_nowait(error)
    else:
        queue.put_nowait(None)
