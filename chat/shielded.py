"""Work that has to come to its end, although whoever waits for it may be cancelled.

A thread that writes to the database goes on when the task that awaits it is cancelled: a client that
leaves must not leave half of something behind.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

_unended: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks weakly


async def to_its_end(work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Await it, in a task of its own; `context` is what it runs in, this one's where it is missing."""
    return await asyncio.shield(_task(work, context))


def in_background(work: Coroutine[Any, Any, object]) -> None:
    """Begin it, for nobody who waits; in the context of whoever asks for it."""
    _task(work)


async def done_or_undone(work: Awaitable[T], undo: Callable[[T], Awaitable[object]]) -> T:
    """What it returns; where the caller is cancelled before, `undo` gets it, in the background."""
    task = work if isinstance(work, asyncio.Future) else _task(_awaited(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        _task(_undone(task, undo))
        raise


async def _undone(task: asyncio.Future[T], undo: Callable[[T], Awaitable[object]]) -> None:
    with suppress(Exception):  # what failed has done nothing
        await task
    if not task.cancelled() and task.exception() is None:
        await undo(task.result())


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _task(work: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
    task = asyncio.create_task(work, context=context)
    _unended.add(task)
    task.add_done_callback(_unended.discard)
    return task
