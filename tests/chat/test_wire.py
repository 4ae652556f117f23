"""A reader that does not acknowledge is waited for, not buffered for."""

import asyncio

import pytest

from chat import wire
from chat.wire import AckWindow


async def test_the_window_closes_and_opens_with_acknowledgements() -> None:
    window = AckWindow()
    size = wire.WINDOW_BYTES // 4
    for seq in range(1, 5):
        await window.room_for(seq, size)
    assert not window.is_open
    waiting = asyncio.create_task(window.room_for(5, size))
    await asyncio.sleep(0)
    assert not waiting.done()
    window.acknowledge(1)
    await waiting
    window.acknowledge(5)
    assert window.is_open


async def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PATIENCE_S", 0.01)  # the clock
    window = AckWindow()
    await window.room_for(1, wire.WINDOW_BYTES)
    with pytest.raises(TimeoutError):
        await window.room_for(2, 1)
