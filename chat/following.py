"""Following a run from wherever its events are: this process's memory, the log, or its message."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat import access, run_log_reading, runs, values
from chat.db import in_db
from chat.errors import NotFound
from chat.events import TERMINAL, LogEvent, Phase
from chat.models import ACTIVE_STATUSES

POLL_S = 0.3  # of the log, for a run that another process writes


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event of a run with its seq."""

    seq: int
    event: LogEvent


@dataclass(frozen=True, slots=True)
class Reset:
    """The follower has seen events that the log does not have; it starts over from seq 1."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended and its events may be gone; the message is the whole truth."""

    message: values.Value


News = Numbered | Phase | Reset | Ended


async def follow(user: Any, run_id: UUID, after: int) -> AsyncGenerator[News, None]:
    """Everything behind seq `after`, until the run ends. Raises NotFound."""
    run = runs.get(run_id)
    if run is not None and run.user_id != user.pk:
        raise NotFound("run")
    seq = after
    if run is not None:
        if seq > len(run.events):
            yield Reset()
            seq = 0
        async with aclosing(runs.follow(run, seq)) as items:
            async for item in items:
                if isinstance(item, Phase):
                    yield item
                else:
                    seq = item[0]
                    yield Numbered(*item)
        if run.has_ended:
            return
    async with aclosing(_follow_log(user, run_id, seq)) as news:
        async for piece in news:
            yield piece


async def _follow_log(user: Any, run_id: UUID, seq: int) -> AsyncGenerator[News, None]:
    while True:
        generation = await in_db(access.generation_for)(user, run_id)
        if seq > generation.seq:
            yield Reset()
            seq = 0
        for number, event in await in_db(run_log_reading.events_after)(run_id, seq):
            if number != seq + 1:
                break  # pruned in between
            seq = number
            yield Numbered(number, event)
            if isinstance(event, TERMINAL):
                return
        if generation.status not in ACTIVE_STATUSES:
            yield Ended(await in_db(values.message_value)(generation.message))
            return
        await asyncio.sleep(POLL_S)
