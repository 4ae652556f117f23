"""What a web process does beside its requests is done when it waits, whatever went wrong before."""

import asyncio
from contextlib import suppress

import pytest

from chat.service import Waits
from webapp import chores

AT_FIRST = ["embed_messages", "reembed_documents", "write_counted_events"]
"""What nothing tells of is looked for as soon as a process starts."""
NAMES = ("recover_lost", "embed_documents", "embed_small_documents", *AT_FIRST)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the chores that were done, in order; nothing waits unless a test says so."""
    names: list[str] = []
    monkeypatch.setattr(chores, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(chores, "AWAY_S", 0.01)
    for name in NAMES:

        async def work(name: str = name) -> None:
            names.append(name)

        work.__name__ = name
        monkeypatch.setattr(chores, name, work)
    return names


async def run_until(condition: asyncio.Event) -> None:
    task = asyncio.create_task(chores.run())
    try:
        await asyncio.wait_for(condition.wait(), 5)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_only_what_waits_is_done(done: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    is_over = asyncio.Event()

    async def look() -> frozenset[Waits]:
        nonlocal looks
        looks += 1
        if looks == 20:
            is_over.set()
        return frozenset({Waits.DOCUMENTS} if looks == 3 else ())

    monkeypatch.setattr(chores, "_look", look)
    await run_until(is_over)
    assert sorted(done) == sorted(["embed_documents", "embed_small_documents", *AT_FIRST])


async def test_a_look_that_fails_ends_nothing(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = asyncio.Event()
    looks = 0

    async def look() -> frozenset[Waits]:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise ConnectionError("the database is away")
        if looks > 5:
            is_over.set()
        return frozenset({Waits.ANSWERS})

    monkeypatch.setattr(chores, "_look", look)
    await run_until(is_over)
    assert sorted(done) == sorted([*AT_FIRST, "recover_lost"]), "not again until it has paused"


async def test_work_that_fails_is_begun_again(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = asyncio.Event()
    tries = 0

    async def fail() -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            is_over.set()
        raise ValueError("not now")

    async def look() -> frozenset[Waits]:
        return frozenset({Waits.DOCUMENTS})

    monkeypatch.setattr(chores, "_look", look)
    monkeypatch.setattr(chores, "embed_small_documents", fail)
    await run_until(is_over)
    assert sorted(done) == sorted(["embed_documents", *AT_FIRST])
