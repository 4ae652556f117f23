"""The life of a web process: what starts with its event loop, and how it ends.

`manage.py serve` calls startup() and drain() itself, since daphne knows no ASGI lifespan; other
servers do it through `Lifespan`.
"""

import asyncio
import logging

from django.conf import settings

from chat import service
from webapp import chores
from webapp.asgi_types import Application, Receive, Scope, Send

logger = logging.getLogger(__name__)

_draining = False
_chores: asyncio.Task[None] | None = None


def is_draining() -> bool:
    return _draining


def is_idle() -> bool:
    """Whether no answer is being written and no model is on its way into memory."""
    is_loading = any(state.state == "loading" for state in service.model_states())
    return not service.num_active() and not is_loading


async def startup() -> None:
    """Start the engine, and take up batches, documents, and answers whose process died. Call it on the
    serving loop."""
    global _draining, _chores
    _draining = False
    _chores = asyncio.create_task(chores.run(), name="chores")
    await service.start()


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the engine."""
    global _draining
    _draining = True
    if _chores is not None:
        _chores.cancel()
    await service.drain(timeout_s)
    try:
        await chores.write_counted_events()
    except Exception:
        logger.exception("what strangers have tried could not be counted")


class Lifespan:
    """The ASGI lifespan protocol, for servers that speak it."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            return await self.application(scope, receive, send)
        await receive()
        try:
            await service.check_moderation()
            await startup()
        except Exception as error:
            logger.exception("the start failed")
            return await send({"type": "lifespan.startup.failed", "message": str(error)})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await drain(settings.DRAIN_TIMEOUT_S)
        await send({"type": "lifespan.shutdown.complete"})
