"""Identifiers of rows."""

import secrets
import time
import uuid


def uuid7() -> uuid.UUID:
    """A UUID that sorts by creation time, so that new rows land at the end of the index.

    48 bits of milliseconds, then 74 random bits. Source: RFC 9562, section 5.7.
    """
    milliseconds = time.time_ns() // 1_000_000
    random_a = secrets.randbits(12)
    random_b = secrets.randbits(62)
    return uuid.UUID(
        int=(milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | random_a << 64 | 2 << 62 | random_b
    )
