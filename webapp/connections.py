"""Giving database connections back before long work begins."""

from django.db import connections


def release_connections() -> None:
    """Return this thread's connections to the pool, except where a transaction is open.

    Django returns them at the end of a request, and an answer may take minutes: ten of them would
    hold the whole pool.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
