"""What the first answer would wait for, done while nobody asks: half a second of imports and files."""

import asyncio
import logging

from django.conf import settings

from chat import moderating
from chat.engine import engine
from inference import Caller, EngineError
from moderation.classifiers.spec import BuiltIn

logger = logging.getLogger(__name__)

_TEXT = "Good morning."


async def warm(model: str) -> None:
    """Once the chat model is there: its tokenizer, and what judges questions. Asks no other server."""
    if engine().is_upstream(model):
        return
    async for _ in engine().changes():
        state = engine().state(model).state
        if state == "ready":
            break
        if state == "failed":
            return
    try:
        await engine().tokenizer(model)
    except EngineError as error:
        logger.warning("the tokenizer of %s was not read: %s", model, error)
    specs = settings.MODERATION
    if specs and all(isinstance(spec, BuiltIn) for spec in specs):
        await moderating.screen([_TEXT], Caller(priority="background"))


def warm_soon(model: str) -> "asyncio.Task[None]":
    return asyncio.create_task(warm(model), name=f"warm {model}")
