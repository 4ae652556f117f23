"""The thread of a request: one for all of its synchronous code, nobody else's meanwhile, used again."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import SyncToAsync, sync_to_async

from webapp import request_threads
from webapp.request_threads import MAX_IDLE, RequestThread, end_without_thread, has_thread

thread = sync_to_async(threading.get_ident)


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ThreadPoolExecutor]]:
    idle: list[ThreadPoolExecutor] = []
    monkeypatch.setattr(request_threads, "_idle", idle)
    yield idle
    for executor in idle:
        executor.shutdown()


async def test_all_of_a_request_runs_in_one_and_the_next_has_it(
    idle: list[ThreadPoolExecutor],
) -> None:
    found = []
    for _ in range(3):
        async with RequestThread():
            found.append({await thread() for _ in range(4)})
    assert len(found[0]) == 1
    assert found[0] == found[1] == found[2]
    assert found[0].isdisjoint({threading.get_ident()})
    assert len(idle) == 1


async def test_requests_at_the_same_time_have_threads_of_their_own(
    idle: list[ThreadPoolExecutor],
) -> None:
    num = MAX_IDLE + 5
    barrier = asyncio.Barrier(num)

    async def request() -> int:
        async with RequestThread():
            mine = await thread()
            await barrier.wait()
            assert await thread() == mine
            return mine

    assert len(set(await asyncio.gather(*(request() for _ in range(num))))) == num
    assert len(idle) == MAX_IDLE, "the others are closed"


async def test_who_needs_none_has_none(idle: list[ThreadPoolExecutor]) -> None:
    async with RequestThread():
        assert not has_thread()
    assert not idle
    async with RequestThread():
        await thread()
        assert has_thread()
    assert has_thread(), "outside of a request nobody knows"


async def test_who_needed_none_is_closed_without(idle: list[ThreadPoolExecutor]) -> None:
    ours = threading.get_ident()
    async with RequestThread():
        end_without_thread()
        assert await thread() == ours
        with pytest.raises(ZeroDivisionError):
            await sync_to_async(divmod)(1, 0)
        assert await asyncio.create_task(thread()) != ours, "another of its tasks may block"
    async with RequestThread():
        theirs = await thread()
        end_without_thread()
        assert await thread() == theirs, "where something may be open"
    assert len(idle) == 1
    end_without_thread()  # outside of a request nothing ends
    assert not vars(SyncToAsync.threadlocal)


async def test_a_request_within_a_request_shares_its_thread() -> None:
    async with RequestThread():
        mine = await thread()
        async with RequestThread():
            assert await thread() == mine
        assert await thread() == mine


async def test_what_outlives_its_request_works_on(idle: list[ThreadPoolExecutor]) -> None:
    """An answer goes on when the request that asked for it is over."""
    is_over = asyncio.Event()

    async def answer() -> int:
        await is_over.wait()
        return await thread()

    async with RequestThread():
        mine = await thread()
        task = asyncio.create_task(answer())
    async with RequestThread():
        assert await thread() == mine
        is_over.set()
        assert await task != mine


async def test_a_cancelled_request_ends_when_its_thread_is_free_and_leaves_it_to_nobody(
    idle: list[ThreadPoolExecutor],
) -> None:
    may_end = threading.Event()

    async def request() -> None:
        async with RequestThread():
            await sync_to_async(may_end.wait)(10)

    task = asyncio.create_task(request())
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0.05)
    assert not idle
    assert not task.done(), "asgiref waits as well"
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not idle


async def test_nor_is_it_anybodys_where_something_was_cancelled_in_its_queue(
    idle: list[ThreadPoolExecutor],
) -> None:
    """A response that was never closed, say, with what its request had open."""
    may_end = threading.Event()

    async def request() -> None:
        async with RequestThread():
            first = asyncio.create_task(sync_to_async(may_end.wait)(10))
            await asyncio.sleep(0.05)
            first.cancel()
            second = asyncio.create_task(sync_to_async(int)())
            await asyncio.sleep(0.05)
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)

    task = asyncio.create_task(request())
    await asyncio.sleep(0.3)
    assert not task.done(), "the first one still runs"
    may_end.set()
    await task
    assert not idle


async def test_what_ends_by_an_exception_leaves_nothing_to_the_next(
    idle: list[ThreadPoolExecutor],
) -> None:
    with pytest.raises(ValueError, match="broken"):
        async with RequestThread():
            await thread()
            raise ValueError("broken")
    assert not idle
