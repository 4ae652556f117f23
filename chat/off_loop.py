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

P = ParamSpec("P")
T = TypeVar("T")


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread, in the caller's context."""
    context = copy_context()
    call = partial(context.run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_POOL, call)
