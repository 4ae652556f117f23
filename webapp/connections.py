"""Giving database connections back before long work begins."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


def release_connections() -> None:
    """Return this thread's connections to the pool, except where a transaction is open.

    Django returns them at the end of a request, and an answer may take minutes: ten of them would
    hold the whole pool.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def releasing(ask: Callable[P, T]) -> Callable[P, T]:
    """What asks the database before a view begins: it leaves its thread no connection."""

    @wraps(ask)
    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return ask(*args, **kwargs)
        finally:
            release_connections()

    return asked
