"""A line whose consumer is held up, by a page that does not read or by the database."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from chat import http_line

LINE = "a" * 20


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Any:
    heard = http_line._Stream({"user": SimpleNamespace(pk=1)}, LINE, None).heard  # type: ignore[arg-type]
    monkeypatch.setitem(http_line._lines, (1, LINE), heard)
    return heard


async def post(*frames: str) -> int:
    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(frames).encode()}

    async def send(message: Any) -> None:
        told.append(message)

    told: list[Any] = []
    scope = {"user": SimpleNamespace(pk=1)}
    await http_line._take(scope, LINE, receive, send)
    return int(told[0]["status"])


async def test_long_frames_are_refused_once_there_is_no_room_for_them(heard: Any) -> None:
    frame = "x" * 900_000
    answers = [await post(frame) for _ in range(10)]
    assert answers == [202] * 3 + [429] * 7
    while not heard.empty():
        heard.get_nowait()
    assert await post(frame) == 202


@pytest.mark.usefixtures("heard")
async def test_so_are_many_short_ones() -> None:
    answers = [await post(*"x" * 200) for _ in range(10)]
    assert answers == [202] * 6 + [429] * 4
