"""Threads for prompts and tools, apart from those that wait for the database.

asyncio's own few threads serve every query of the process; a long prompt or a slow tool must not
keep them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

_POOL = ThreadPoolExecutor(4, thread_name_prefix="off-loop")
# Of its own: a large file is read for seconds, and nobody's prompt is to wait for it.
_FILES = ThreadPoolExecutor(1, thread_name_prefix="files")
# Each call is a process that draws a page; many pages that scroll by must not take all cores.
_PICTURES = ThreadPoolExecutor(2, thread_name_prefix="pictures")

SHORT_CHARS = 2_000

P = ParamSpec("P")
T = TypeVar("T")


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


async def off_loop_for_pictures(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for pages that are drawn: two at a time. Who goes before it is their turn is left out."""
    return await _run_in(_PICTURES, partial(work, *args, **kwargs))


async def _run_in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    call = partial(copy_context().run, work)
    return await asyncio.get_running_loop().run_in_executor(pool, call)
