"""A response that cannot be kept has failed, and its reader is told so."""

import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from chat import responses_store
from chat.events import Delta, Finished
from chat.openai_responses import Response
from chat.openai_stream import Begun, Numbered
from chat.responses_schemas import ResponseIn


def refuse(*args: Any) -> None:
    raise ValueError("the database refused")


async def told() -> AsyncGenerator[Numbered, None]:
    yield 0, Delta("Hello", 0)
    yield 0, Finished("stop")


async def frames_of(
    data: ResponseIn, events: AsyncGenerator[Numbered, None] | None = None
) -> list[dict[str, Any]]:
    request = SimpleNamespace(run_id=responses_store.new_id(), document_tool=None)
    asked: Any = SimpleNamespace(rights=SimpleNamespace(user=None), request=request, tokenizer=None)
    frames = Response(data, None, asked)._frames(Begun(events or told()))
    return [json.loads(frame.split("data: ", 1)[1]) async for frame in frames]


@pytest.mark.django_db(transaction=True)
async def test_its_stream_ends_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses_store, "save", refuse)
    *others, last = await frames_of(ResponseIn(model="m", input="hi"))
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == "server_error"
    assert last["response"]["completed_at"] is None
    assert last["sequence_number"] == len(others)
    assert "response.completed" not in [frame["type"] for frame in others]


async def test_one_that_is_not_to_be_kept_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses_store, "save", refuse)
    frames = await frames_of(ResponseIn(model="m", input="hi", store=False))
    assert frames[-1]["type"] == "response.completed"


async def test_one_whose_search_finds_no_database_ends_as_failed() -> None:
    async def broken() -> AsyncGenerator[Numbered, None]:
        yield 0, Delta("Hello", 0)
        raise OperationalError("the database is away")

    frames = await frames_of(ResponseIn(model="m", input="hi", store=False), broken())
    assert frames[-1]["type"] == "response.failed"
