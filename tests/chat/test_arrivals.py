"""Who has connected and said nothing yet is waited for, and not for long."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from chat import arrivals
from chat.gathering import Gathering


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_expected", {})


def test_who_has_spoken_is_not_expected() -> None:
    arrivals.connected("a")
    arrivals.connected("b")
    arrivals.spoke("a")
    assert arrivals.are_expected()
    arrivals.spoke("b")
    arrivals.spoke("b")  # who leaves has spoken, too
    assert not arrivals.are_expected()


def test_who_stays_silent_is_forgotten() -> None:
    for number in range(100):
        arrivals.connected(number)
    time.sleep(arrivals.PATIENCE_S * 1.1)
    assert not arrivals.are_expected()
    assert not arrivals._expected


async def test_the_first_of_many_waits_for_those_who_have_connected_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrivals, "PATIENCE_S", 10.0)
    calls: list[list[int]] = []

    async def answer(numbers: Sequence[int]) -> Sequence[int]:
        calls.append(list(numbers))
        return numbers

    gathering = Gathering(answer)

    async def late(number: int) -> int:
        await asyncio.sleep(0.001)
        arrivals.spoke(number)
        return await gathering.ask(number)

    arrivals.connected(1)
    assert await asyncio.gather(gathering.ask(0), late(1)) == [0, 1]
    assert calls == [[0, 1]]
    assert await gathering.ask(2) == 2, "nobody is on the way any more"
