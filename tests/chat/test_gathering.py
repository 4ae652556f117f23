"""Questions asked at the same time: each gets its own answer, and none an answer from before it."""

import asyncio
import random
import time
from collections.abc import Sequence

import pytest

from chat import gathering as gathering_module
from chat.gathering import CALM_S, MOST_ALONE, Gathering


class Asked:
    """Doubles numbers, and remembers what was asked together. It can be held up."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None

    async def double(self, numbers: Sequence[int]) -> Sequence[int | Exception]:
        self.calls.append(list(numbers))
        await self.may_answer.wait()
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return [ValueError(n) if n < 0 else 2 * n for n in numbers]


async def _begun(asked: Asked, num_calls: int = 1) -> None:
    while len(asked.calls) < num_calls:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_a_lone_question_waits_for_nobody() -> None:
    asked = Asked()
    gathering = Gathering(asked.double)
    assert [await gathering.ask(n) for n in range(3)] == [0, 2, 4]
    assert asked.calls == [[0], [1], [2]]


async def test_what_comes_at_once_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where some are on their way for some turns of the loop more, in which others do much."""
    monkeypatch.setattr(gathering_module, "LONGEST_S", 60.0)  # which a busy machine may take
    asked = Asked()
    gathering = Gathering(asked.double)

    async def on_its_way(number: int) -> int:
        for _ in range(number % 4):
            time.sleep(CALM_S)  # noqa: ASYNC251
            await asyncio.sleep(0)
        return await gathering.ask(number)

    tasks = [asyncio.create_task(on_its_way(n)) for n in range(32)]
    assert await asyncio.gather(*tasks) == [2 * n for n in range(32)]
    assert list(map(sorted, asked.calls)) == [list(range(32))]


async def test_a_loop_that_is_never_calm_is_not_waited_for() -> None:
    asked = Asked()

    async def never_calm() -> None:
        while True:
            time.sleep(2 * CALM_S)  # noqa: ASYNC251
            await asyncio.sleep(0)

    turns = 0

    async def counted() -> Sequence[int]:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinning = [asyncio.create_task(never_calm()), asyncio.create_task(counted())]
    assert await Gathering(asked.double).ask(1) == 2
    for task in spinning:
        task.cancel()
    assert turns < MOST_ALONE + 10


async def test_what_comes_during_a_call_is_answered_by_the_next() -> None:
    asked = Asked()
    asked.may_answer.clear()
    gathering = Gathering(asked.double)
    tasks = [asyncio.create_task(gathering.ask(0))]
    await _begun(asked)
    tasks += [asyncio.create_task(gathering.ask(n)) for n in range(1, 64)]
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert await asyncio.gather(*tasks) == [2 * n for n in range(64)]
    assert asked.calls == [[0], list(range(1, 64))]


async def test_groups_do_not_wait_for_each_other() -> None:
    asked = Asked()
    asked.may_answer.clear()
    gathering = Gathering(asked.double)
    tasks = [asyncio.create_task(gathering.ask(n, group=n % 2)) for n in range(4)]
    await _begun(asked, 2)
    assert asked.calls == [[0, 2], [1, 3]]
    asked.may_answer.set()
    assert await asyncio.gather(*tasks) == [0, 2, 4, 6]


async def test_so_many_calls_are_under_way_at_once() -> None:
    asked = Asked()
    asked.may_answer.clear()
    gathering = Gathering(asked.double, at_most=3, at_once=2)
    tasks = [asyncio.create_task(gathering.ask(n)) for n in range(8)]
    await _begun(asked, 2)
    await asyncio.sleep(0.01)
    assert asked.calls == [[0, 1, 2], [3, 4, 5]]
    asked.may_answer.set()
    assert await asyncio.gather(*tasks) == [2 * n for n in range(8)]
    assert asked.calls[2:] == [[6, 7]]
    assert await gathering.ask(8) == 16, "and nobody is left who would not work"
    assert not gathering._groups


async def test_one_question_fails_alone() -> None:
    gathering = Gathering(Asked().double)
    results = await asyncio.gather(*map(gathering.ask, [1, -2, 3, -4]), return_exceptions=True)
    assert [r if isinstance(r, int) else r.args for r in results] == [2, (-2,), 6, (-4,)]


async def test_a_call_that_fails_fails_for_those_who_asked_it_only() -> None:
    asked = Asked()
    asked.error = OSError("away")
    gathering = Gathering(asked.double)
    results = await asyncio.gather(*map(gathering.ask, range(5)), return_exceptions=True)
    assert all(isinstance(result, OSError) for result in results)
    asked.error = None
    assert await gathering.ask(5) == 10


async def test_who_leaves_takes_nobody_along() -> None:
    """Whoever asked first has begun the call for all."""
    chance = random.Random(7)
    asked = Asked()
    gathering = Gathering(asked.double)
    for _ in range(50):
        asked.may_answer.clear()
        tasks = [asyncio.create_task(gathering.ask(n)) for n in range(20)]
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
        gone = set(chance.sample(range(20), 7)) | {0}
        for n in gone:
            tasks[n].cancel()
        asked.may_answer.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for n, result in enumerate(results):
            assert isinstance(result, asyncio.CancelledError) if n in gone else result == 2 * n


def test_the_end_of_a_loop_leaves_nothing_behind() -> None:
    """A question of the next loop is not put behind a call that nobody works on any more."""
    asked: list[Sequence[int]] = []

    async def never(numbers: Sequence[int]) -> Sequence[int]:
        asked.append(numbers)
        await asyncio.sleep(3600 if len(asked) == 1 else 0)
        return numbers

    gathering = Gathering(never)

    async def leave() -> None:
        task = asyncio.create_task(gathering.ask(1))
        await asyncio.sleep(0.01)
        assert not task.done()

    asyncio.run(leave())
    assert asyncio.run(asyncio.wait_for(gathering.ask(2), 5)) == 2
