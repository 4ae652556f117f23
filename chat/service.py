"""What the shell needs of chat: start it, drain it, and know how the models are."""

import asyncio
import logging
from contextlib import suppress
from time import monotonic

from django.conf import settings

from chat import (
    batch_runner,
    decisions,
    draining,
    embedder,
    message_embedder,
    runs,
    screening,
    windows,
)
from chat.active import num_active
from chat.batch_rows import find_waiting as find_waiting_batches
from chat.batch_runner import take_up as take_up_batch
from chat.engine import close_engine, engine, problems_now, workers_now
from chat.moderating import check, close_screener
from chat.moderating import problem as moderation_problem
from chat.recovery import find_lost, resume
from chat.scheduled_sends import find_due, send_due
from chat.tools.servers.offering import ask_servers as ask_tool_servers
from chat.tools.servers.offering import close as close_tool_servers
from chat.tools.servers.offering import offer as offer_tools
from chat.tools.servers.offering import others as other_tool_servers
from chat.tools.servers.offering import states as tool_server_states
from chat.waiting import Waits, waiting
from chat.warming import warm_soon
from inference import (
    BUILTIN_EMBEDDING,
    EngineError,
    EngineStats,
    GpuReading,
    ModelState,
    WorkerState,
    read_gpus,
)
from moderation.classifiers.spec import BuiltIn

logger = logging.getLogger(__name__)

_POLL_S = 0.05
_JUDGE_S = 2.0  # for verdicts on answers that nobody waits for
SMALL_CHUNKS = 64

_warming: asyncio.Task[None] | None = None

__all__ = [
    "Waits",
    "ask_tool_servers",
    "check_moderation",
    "drain",
    "embed_documents",
    "embed_messages",
    "embed_small_documents",
    "find_due",
    "find_lost",
    "find_waiting_batches",
    "model_states",
    "model_stats",
    "moderation_problem",
    "num_active",
    "offer_tools",
    "other_tool_servers",
    "problems_now",
    "reembed_documents",
    "resume",
    "send_due",
    "start",
    "take_up_batch",
    "tool_server_states",
    "waiting",
]


async def start() -> None:
    """Make the engine, and tell the log which models are named and not there. With VITRINE_PRELOAD start
    loading the default model, and what questions are judged by: the first one waits for both.

    Call once on the event loop that will serve."""
    global _warming
    models = [engine().default_model]
    if any(isinstance(spec, BuiltIn) for spec in settings.MODERATION):
        models.append(BUILTIN_EMBEDDING)
    for problem in problems_now():
        logger.error("%s", problem)
    await offer_tools()  # as they were when the process before ended: answers go on with them
    for model in models if settings.PRELOAD_MODEL else ():
        try:
            engine().load(model)
        except EngineError as error:
            logger.error("%s is not loaded: %s", model, error)
    if settings.PRELOAD_MODEL:
        _warming = warm_soon(engine().default_model)


async def check_moderation() -> None:
    """Raises EngineError where a configured classifier can never be asked. Loads no model."""
    await check(engine())


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the workers.

    An answer that takes longer stays in the log as it is; the next process goes on with it, and with
    every batch.
    """
    draining.stop_admitting()
    if _warming is not None:
        _warming.cancel()
    await batch_runner.stop_all()
    deadline_s = monotonic() + timeout_s
    # Polled: what was admitted a moment ago is not a task yet, and /v1 knows no runs.
    while (num_active() or runs.active()) and monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    await runs.release()
    with suppress(TimeoutError):
        async with asyncio.timeout(_JUDGE_S):
            await screening.noted()
            await decisions.written()
    await close_tool_servers()
    await close_screener()
    await close_engine()
    await windows.close()


async def embed_documents() -> None:
    """Give vectors to passages that wait for theirs. In the system's scope."""
    await embedder.embed_documents(runs.PROCESS_ID)


async def embed_small_documents() -> None:
    """The same beside it, so that what is attached to a message does not wait for whole books."""
    await embedder.embed_documents(runs.PROCESS_ID, SMALL_CHUNKS)


def model_stats(model: str) -> EngineStats | None:
    """How busy its workers are; None of one that has none: another server runs it, or its base does."""
    has_none = engine().is_upstream(model) or engine().spec(model).base
    return None if has_none else engine().stats(model)


async def reembed_documents() -> None:
    """Give vectors by the configured model to passages that have none by it. In the system's scope."""
    await embedder.reembed_documents(runs.PROCESS_ID)


async def embed_messages() -> None:
    """Give vectors to messages that wait for theirs, behind all documents. In the system's scope."""
    await message_embedder.embed_messages()


def worker_states() -> list[WorkerState]:
    """Of every model that has been used in this process; from any thread."""
    return workers_now()


def gpu_readings() -> tuple[GpuReading, ...]:
    """What the driver tells of the machine's GPUs; asks it, which takes milliseconds."""
    return read_gpus()


def model_states() -> list[ModelState]:
    """Every model of the catalogue; the default one among them."""
    return engine().models()
