"""What the shell needs of chat: start it, drain it, and know how the models are."""

from chat import answers, runs
from chat.engine import close_engine, engine
from chat.recovery import find_lost, resume
from inference import ModelState

__all__ = ["drain", "find_lost", "model_states", "resume", "start"]


async def start() -> None:
    """Start loading the default model. Call once on the event loop that will serve."""
    engine().load(engine().default_model)


async def drain(timeout_s: float) -> None:
    """Admit nothing more, let running answers end within `timeout_s`, and end the workers.

    An answer that takes longer stays in the log as it is; the next process goes on with it.
    """
    answers.stop_admitting()
    await runs.drain(timeout_s)
    await close_engine()


def model_states() -> list[ModelState]:
    """Every model of the catalogue; the default one among them."""
    return engine().models()
