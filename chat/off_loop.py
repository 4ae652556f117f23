"""Threads for prompts and tools, apart from those that wait for the database.

asyncio's own few threads serve every query of the process; a long prompt or a slow tool must not
keep them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

_POOL = ThreadPoolExecutor(4, thread_name_prefix="off-loop")
# Of its own: a large file is read for seconds, and nobody's prompt is to wait for it.
_FILES = ThreadPoolExecutor(1, thread_name_prefix="files")
# Each call is a process that draws a page; many pages that scroll by must not take all cores.
_PICTURES = ThreadPoolExecutor(2, thread_name_prefix="pictures")

SHORT_CHARS = 2_000

P = ParamSpec("P")
T = TypeVar("T")


class _InTurn:
    """Threads that each user has one of at a time, so that another's call is next."""

    def __init__(self, num_threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix=name)
        # A lock goes with the last of its user's calls.
        self._turns: WeakValueDictionary[Any, asyncio.Lock] = WeakValueDictionary()

    async def run(self, user: Any, work: Callable[[], T]) -> T:
        turn = self._turns.setdefault(user, asyncio.Lock())
        await turn.acquire()
        has_left = False

        def begin() -> T:
            if has_left:  # while other users' calls had the threads
                raise asyncio.CancelledError
            return work()

        running = asyncio.ensure_future(_run_in(self._pool, begin))

        def end(ended: asyncio.Future[T]) -> None:
            turn.release()
            if not ended.cancelled():
                ended.exception()  # whoever would hear of it may have left

        running.add_done_callback(end)
        try:
            # A thread goes on when its caller leaves, and it is still that caller's turn.
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            has_left = True
            raise


# What is only counted, and may be asked for without being a request.
_COUNTING = _InTurn(1, "counting")
# What waits for other servers, for as long as those take.
_FETCHING = _InTurn(4, "fetching")
# The same for pages that models open, apart: a model may open many, and programs wait for images.
_PAGES = _InTurn(4, "pages")


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread, in the caller's context."""
    return await _run_in(_POOL, partial(work, *args, **kwargs))


async def off_loop_if_long(
    num_chars: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The same; but few characters take less than the way to a thread and back, above all where many
    come at once and threads wait for each other."""
    if num_chars <= SHORT_CHARS:
        return work(*args, **kwargs)
    return await off_loop(work, *args, **kwargs)


async def off_loop_for_files(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for what reads a whole file: one after the other."""
    return await _run_in(_FILES, partial(work, *args, **kwargs))


async def off_loop_for_counting(
    user: Any, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The same for what is counted and not asked: nobody's prompt waits for it, and of one user's many
    calls one is in the queue at a time, so that another's is next."""
    return await _COUNTING.run(user, partial(work, *args, **kwargs))


async def off_loop_for_fetching(
    user: Any, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The same for what other servers are asked for: a user's calls one after the other."""
    return await _FETCHING.run(user, partial(work, *args, **kwargs))


async def off_loop_for_pages(
    user: Any, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The same for pages of the web that models open."""
    return await _PAGES.run(user, partial(work, *args, **kwargs))


async def off_loop_for_pictures(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for pages that are drawn: two at a time. Who goes before it is their turn is left out."""
    return await _run_in(_PICTURES, partial(work, *args, **kwargs))


async def _run_in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    call = partial(copy_context().run, work)
    return await asyncio.get_running_loop().run_in_executor(pool, call)
