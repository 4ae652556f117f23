"""What the shell needs of chat: start it, drain it, and know how the models are."""

import asyncio
from time import monotonic

from chat import answers, orchestrator, runs
from chat.engine import close_engine, engine
from chat.recovery import find_lost, resume
from inference import ModelState

_POLL_S = 0.05

__all__ = ["drain", "find_lost", "model_states", "resume", "start"]


async def start() -> None:
    """Start loading the default model. Call once on the event loop that will serve."""
    engine().load(engine().default_model)


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the workers.

    An answer that takes longer stays in the log as it is; the next process goes on with it.
    """
    answers.stop_admitting()
    deadline_s = monotonic() + timeout_s
    # Polled: what was admitted a moment ago is not a task yet, and /v1 knows no runs.
    while (orchestrator.num_active() or runs.active()) and monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    await runs.release()
    await close_engine()


def model_states() -> list[ModelState]:
    """Every model of the catalogue; the default one among them."""
    return engine().models()
