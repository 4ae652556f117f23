"""Identifiers of rows."""

import os
import secrets
import time
import uuid
from datetime import datetime
from threading import Lock

_lock = Lock()
# A fork waits until nobody holds it: no thread of the child would ever release it.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
_last = 0


def uuid7() -> uuid.UUID:
    """A UUID that sorts by creation time, so that new rows land at the end of the index.

    48 bits of milliseconds, then 74 random bits. In one process each sorts behind all before it, also in
    the same millisecond or after the clock was set back: if its first 60 bits would not, they are those
    of the last one plus one. Source: RFC 9562, sections 5.7 and 6.2.
    """
    global _last
    with _lock:
        drawn = (time.time_ns() // 1_000_000) << 12 | secrets.randbits(12)
        _last = first = max(drawn, _last + 1)
    milliseconds, rest = first >> 12 & (1 << 48) - 1, first & (1 << 12) - 1
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | rest << 64 | 2 << 62 | secrets.randbits(62))


def lowest_uuid7(moment: datetime) -> uuid.UUID:
    """Below all that `uuid7` makes from then on, and above those before, to the millisecond."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)
