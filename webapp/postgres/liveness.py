"""Whether a connection from the pool still lives: mostly without asking the server.

A server that ends closes its sockets, so there is something to read where nothing was asked: an error
or the end. That costs a system call instead of the round trip of `SELECT 1` before every piece of
work. A server that vanished with its network says nothing; so who has been silent for long is asked.
"""

import select
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool

SILENT_S = 10.0
_heard_s: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()


def check(connection: Connection[Any]) -> None:
    """For ConnectionPool's `check`. Raises psycopg.OperationalError for one that is dead."""
    now_s = monotonic()
    if now_s - _heard_s.get(connection, 0.0) > SILENT_S or _has_news(connection):
        ConnectionPool.check_connection(connection)
    _heard_s[connection] = now_s


def is_alive(connection: Connection[Any]) -> bool:
    """The same, for who has it already."""
    try:
        check(connection)
    except OperationalError:
        return False
    return True


def _has_news(connection: Connection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
