"""Database work from async code."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


def in_db(function: Callable[P, T], executor: Executor | None = None) -> Callable[P, Awaitable[T]]:
    """Run a synchronous function that uses the ORM in a thread of the pool, or of `executor`.

    Not thread-sensitive: outside of an HTTP request asgiref would run all of them one after the
    other in a single thread, and every socket of the process would wait for the slowest query.
    """
    wrapped: Callable[P, Awaitable[T]] = database_sync_to_async(
        function, thread_sensitive=False, executor=executor
    )
    return wrapped
