"""The life of a web process: what starts with its event loop, and how it ends.

`manage.py serve` calls startup() and drain() itself, since daphne knows no ASGI lifespan; other
servers do it through `Lifespan`.
"""

import asyncio
import logging

from asgiref.sync import sync_to_async
from django.conf import settings

from chat import service
from webapp.asgi_types import Application, Receive, Scope, Send
from webapp.tenancy import as_system, as_user

logger = logging.getLogger(__name__)

FIND_LOST_EVERY_S = 3.0

_draining = False
_recovery: asyncio.Task[None] | None = None


def is_draining() -> bool:
    return _draining


async def startup() -> None:
    """Start the engine, and take up answers whose process died. Call it on the serving loop."""
    global _recovery, _draining
    _draining = False
    if settings.PRELOAD_MODEL:
        await service.start()
    _recovery = asyncio.create_task(_keep_recovering(), name="recovery of lost answers")


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the engine."""
    global _recovery, _draining
    _draining = True
    if _recovery is not None:
        _recovery.cancel()
        _recovery = None
    await service.drain(timeout_s)


async def _keep_recovering() -> None:
    while True:
        try:
            await recover_lost()
        except Exception:
            # The database may be away for a moment; lost answers wait in it.
            logger.exception("looking for lost answers failed")
        await asyncio.sleep(FIND_LOST_EVERY_S)


async def recover_lost() -> None:
    """Go on with every answer that nobody writes any more, each in the scope of its owner."""
    with as_system():  # lost answers of all users
        lost = await sync_to_async(service.find_lost, thread_sensitive=False)()
    for run_id, owner_id in lost:
        with as_user(owner_id):
            await service.resume(run_id)


class Lifespan:
    """The ASGI lifespan protocol, for servers that speak it."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            return await self.application(scope, receive, send)
        await receive()
        try:
            await startup()
        except Exception as error:
            logger.exception("the start failed")
            return await send({"type": "lifespan.startup.failed", "message": str(error)})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await drain(settings.DRAIN_TIMEOUT_S)
        await send({"type": "lifespan.shutdown.complete"})
