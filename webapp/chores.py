"""What a web process does beside its requests: it looks for work that nobody does, and does it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from chat import service
from chat.db import in_db
from chat.persisting import AWAY
from chat.service import Waits
from webapp.security_events import has_counted, write_counted
from webapp.tenancy import as_system, as_user

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5  # somebody waits for a small document that is attached to a message, perhaps
AWAY_S = 2.0  # after a look that failed: what waits, waits in the database


@dataclass(slots=True)
class _Chore:
    """Done when something of its kind waits, but not sooner than `pause_s` after the last time; and
    without anything waiting, at first and every `at_least_every_s`."""

    work: Callable[[], Awaitable[None]]
    kind: Waits | None
    pause_s: float
    at_least_every_s: float | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def repeat(self) -> None:
        if self.at_least_every_s is not None:
            self.woken.set()
        while True:
            try:
                async with asyncio.timeout(self.at_least_every_s):
                    await self.woken.wait()
            except TimeoutError:
                pass
            self.woken.clear()
            try:
                await self.work()
            except Exception:
                logger.exception("%s failed", self.work.__name__)
            await asyncio.sleep(self.pause_s)


async def run() -> None:
    """Until it is cancelled."""
    chores = (
        _Chore(recover_lost, Waits.ANSWERS, 3.0),
        _Chore(take_up_batches, Waits.BATCHES, 1.0),
        _Chore(send_scheduled, Waits.SCHEDULES, 1.0),
        _Chore(embed_documents, Waits.DOCUMENTS, 2.0),
        _Chore(embed_small_documents, Waits.DOCUMENTS, LOOK_EVERY_S),
        _Chore(reembed_documents, None, 0.0, at_least_every_s=5.0),
        _Chore(embed_messages, Waits.MESSAGES, 2.0, at_least_every_s=10.0),
        _Chore(write_counted_events, None, 0.0, at_least_every_s=1.0),
        *_chores_of_tool_servers(),
    )
    async with asyncio.TaskGroup() as tasks:
        for chore in chores:
            tasks.create_task(chore.repeat(), name=chore.work.__name__)
        while True:
            pause_s = LOOK_EVERY_S
            try:
                found = await _look()
                for chore in chores:
                    if chore.kind in found:
                        chore.woken.set()
            except Exception:
                logger.exception("nobody knows what waits")
                pause_s = AWAY_S
            await asyncio.sleep(pause_s)


def _chores_of_tool_servers() -> tuple[_Chore, ...]:
    """None where there are no servers. What an operator changes in the console holds seconds later."""
    if not service.other_tool_servers():
        return ()
    return (
        _Chore(service.offer_tools, None, 0.0, at_least_every_s=2.0),
        _Chore(ask_tool_servers, None, 0.0, at_least_every_s=60.0),
    )


async def _look() -> frozenset[Waits]:
    with as_system():  # work of all users
        return await in_db(service.waiting)()


async def recover_lost() -> None:
    """Go on with every answer that nobody writes any more, each in the scope of its owner."""
    with as_system():  # lost answers of all users
        lost = await in_db(service.find_lost)()
    for run_id, owner_id in lost:
        with as_user(owner_id):
            try:
                await service.resume(run_id)
            except AWAY:
                raise  # nor can the others be, now
            except Exception:  # the others are not to wait for one that cannot be
                logger.exception("run %s could not be taken up", run_id)


async def take_up_batches() -> None:
    """Begin, or go on, with batches that nobody works on, each in the scope of its owner."""
    with as_system():  # batches of all users
        waiting = await in_db(service.find_waiting_batches)()
    for batch_id, owner_id, is_ending in waiting:
        with as_user(owner_id):
            await service.take_up_batch(batch_id, owner_id, is_ending=is_ending)


async def send_scheduled() -> None:
    """Send prompts whose time has come, each in the scope of its owner."""
    with as_system():  # schedules of all users
        due = await in_db(service.find_due)()
    for schedule_id, owner_id in due:
        with as_user(owner_id):
            try:
                if not await service.send_due(schedule_id):
                    return
            except AWAY:
                raise
            except Exception:  # the others are not to wait for one that cannot be
                logger.exception("schedule %s could not be sent", schedule_id)


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


async def ask_tool_servers() -> None:
    """Connect to tool servers that are not, and hear what they offer now."""
    with as_system():  # rows are nobody's own
        await service.ask_tool_servers()


async def write_counted_events() -> None:
    """Attempts of strangers, beyond those that have rows of their own."""
    if has_counted():
        with as_system():  # rows are nobody's own
            await in_db(write_counted)()
