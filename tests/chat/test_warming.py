"""The first answer after a start waits for no files and imports."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.engine import close_engine, engine
from chat.warming import warm
from inference import BUILTIN, ChatTokenizer, ModelState
from moderation.classifiers import by_heads
from webapp.moderation_settings import classifier_specs


@pytest.fixture(autouse=True)
async def own_engine() -> AsyncIterator[None]:
    await close_engine()
    yield
    await close_engine()


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """As after a start; the tokenizers that are read from now on."""
    by_heads._heads.cache_clear()
    read: list[object] = []
    load = ChatTokenizer.load
    monkeypatch.setattr(ChatTokenizer, "load", lambda *given: read.append(given) or load(*given))
    return read


async def test_behind_a_model_that_is_loaded_its_tokenizer_and_the_heads_are_read(
    unread: list[object], settings: Any
) -> None:
    settings.MODERATION = classifier_specs(["builtin"])
    engine().load(BUILTIN)
    async with asyncio.timeout(120):
        await warm(BUILTIN)
    assert len(unread) == 1
    assert by_heads._heads.cache_info().currsize == 1
    await engine().tokenizer(BUILTIN)
    assert len(unread) == 1, "it is kept"


async def test_a_model_that_does_not_load_is_not_waited_for(
    unread: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = engine().state(BUILTIN)
    failed = ModelState(state.spec, "failed", is_default=True, detail="no memory")
    monkeypatch.setattr(engine(), "state", lambda model: failed)
    async with asyncio.timeout(5):
        await warm(BUILTIN)
    assert not unread
