"""A lease that is renewed beside what takes long, on the event loop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from django.db import DatabaseError

logger = logging.getLogger(__name__)


@asynccontextmanager
async def renewed(renew: Callable[[], Awaitable[bool]], every_s: float) -> AsyncIterator[None]:
    """Within, the lease is renewed, until `renew` says that it is no longer ours."""
    task = asyncio.create_task(_renew(renew, every_s))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _renew(renew: Callable[[], Awaitable[bool]], every_s: float) -> None:
    is_ours = True
    while is_ours:
        await asyncio.sleep(every_s)
        try:
            is_ours = await renew()
        except DatabaseError:
            logger.warning("a lease could not be renewed, trying again", exc_info=True)
