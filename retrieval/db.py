"""Database work from async code."""

import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")

NUM_THREADS = min(12, (os.cpu_count() or 1) + 4)
_this_thread = threading.local()


def in_db(function: Callable[P, T], executor: Executor | None = None) -> Callable[P, Awaitable[T]]:
    """Run a synchronous function that uses the ORM in a thread of ours, or of `executor`.

    Not thread-sensitive: outside of an HTTP request asgiref would run all of them one after the
    other in a single thread, and every socket of the process would wait for the slowest query.
    """
    wrapped: Callable[P, Awaitable[T]] = database_sync_to_async(
        function, thread_sensitive=False, executor=executor or _threads
    )
    return wrapped


def database_threads(num_threads: int, name: str) -> ThreadPoolExecutor:
    """Threads that keep their connection from one piece of work to the next: to fetch one from the pool,
    and to tell it whose rows it may see, costs as much as many a query."""
    return ThreadPoolExecutor(num_threads, thread_name_prefix=name, initializer=_keep_connection)


def keeps_connection() -> bool:
    """Whether this thread does."""
    return getattr(_this_thread, "keeps_connection", False)


def _keep_connection() -> None:
    _this_thread.keeps_connection = True


_threads = database_threads(NUM_THREADS, "database")
