"""The life of a web process: what starts with its event loop, and how it ends.

`manage.py serve` calls startup() and drain() itself, since daphne knows no ASGI lifespan; other
servers do it through `Lifespan`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from django.conf import settings

from chat import service
from chat.db import in_db
from webapp.asgi_types import Application, Receive, Scope, Send
from webapp.tenancy import as_system, as_user

logger = logging.getLogger(__name__)

FIND_LOST_EVERY_S = 3.0
FIND_BATCHES_EVERY_S = 1.0
FIND_DOCUMENTS_EVERY_S = 2.0
FIND_SMALL_EVERY_S = 0.5  # attached to a message, perhaps, that waits for them
FIND_LACKING_EVERY_S = 5.0
FIND_MESSAGES_EVERY_S = 2.0  # nobody waits for these

_draining = False
_chores: list[asyncio.Task[None]] = []


def is_draining() -> bool:
    return _draining


def is_idle() -> bool:
    """Whether no answer is being written and no model is on its way into memory."""
    is_loading = any(state.state == "loading" for state in service.model_states())
    return not service.num_active() and not is_loading


async def startup() -> None:
    """Start the engine, and take up batches, documents, and answers whose process died. Call it on the
    serving loop."""
    global _draining
    _draining = False
    if settings.PRELOAD_MODEL:
        await service.start()
    _chores.extend(
        asyncio.create_task(_repeat(work, every_s), name=work.__name__)
        for work, every_s in (
            (recover_lost, FIND_LOST_EVERY_S),
            (take_up_batches, FIND_BATCHES_EVERY_S),
            (embed_documents, FIND_DOCUMENTS_EVERY_S),
            (embed_small_documents, FIND_SMALL_EVERY_S),
            (reembed_documents, FIND_LACKING_EVERY_S),
            (embed_messages, FIND_MESSAGES_EVERY_S),
        )
    )


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the engine."""
    global _draining
    _draining = True
    while _chores:
        _chores.pop().cancel()
    await service.drain(timeout_s)


async def _repeat(work: Callable[[], Coroutine[Any, Any, None]], every_s: float) -> None:
    while True:
        try:
            await work()
        except Exception:
            # The database may be away for a moment; what waits, waits in it.
            logger.exception("%s failed", work.__name__)
        await asyncio.sleep(every_s)


async def recover_lost() -> None:
    """Go on with every answer that nobody writes any more, each in the scope of its owner."""
    with as_system():  # lost answers of all users
        lost = await in_db(service.find_lost)()
    for run_id, owner_id in lost:
        with as_user(owner_id):
            await service.resume(run_id)


async def take_up_batches() -> None:
    """Begin, or go on, with batches that nobody works on, each in the scope of its owner."""
    with as_system():  # batches of all users
        waiting = await in_db(service.find_waiting_batches)()
    for batch_id, owner_id, is_ending in waiting:
        with as_user(owner_id):
            await service.take_up_batch(batch_id, owner_id, is_ending=is_ending)


async def embed_documents() -> None:
    """Give vectors to what has been read, which is then found."""
    with as_system():  # documents of all users
        await service.embed_documents()


async def embed_small_documents() -> None:
    """The same for small ones, which wait for no large one."""
    with as_system():
        await service.embed_small_documents()


async def reembed_documents() -> None:
    """Give vectors by the configured model to what has those of another."""
    with as_system():  # documents of all users
        await service.reembed_documents()


async def embed_messages() -> None:
    """Give vectors to what was said, so that it is found by its meaning."""
    with as_system():  # messages of all users
        await service.embed_messages()


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
