"""Writes that a database which is away must not lose: tried again in the background, for a while."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.db import DatabaseError, InterfaceError, OperationalError

from chat.shielded import in_background

logger = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)
"""What is raised where it is no fault of the write."""
PATIENCE_S = 900.0
_LONGEST_PAUSE_S = 2.0


def go_on_trying(write: Callable[[], Awaitable[object]], what: str) -> None:
    """After a first try; `what` is not done, for the log, where nothing helps."""
    in_background(_try(write, what))


async def _try(write: Callable[[], Awaitable[object]], what: str) -> None:
    pause_s = 0.1
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await asyncio.sleep(pause_s)
                try:
                    await write()
                except AWAY:
                    pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)
                else:
                    return
    except (DatabaseError, TimeoutError, asyncio.CancelledError):
        logger.exception("given up: %s", what)
        raise
