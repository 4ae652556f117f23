"""Cyclic garbage of the web process is collected while nobody waits, and by no burst of requests."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from weakref import ref

import pytest

from webapp.serving import garbage

# What other tests have left is collected here as well, and may complain: it is not about that.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class _Knot:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks often; the collector is as it was behind it."""
    thresholds = gc.get_threshold()
    monkeypatch.setattr(garbage, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(garbage, "COLLECT_EVERY_S", 0.01)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


async def _run_for(seconds: float, *, is_idle: bool) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await garbage.collect_when_idle(lambda: is_idle)


async def _until(holds: Callable[[], bool]) -> None:
    """Of a process that has all tests in it, one look takes a while."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_an_idle_process_frees_knots_and_keeps_what_was_there() -> None:
    task = asyncio.create_task(_run_for(60, is_idle=True))
    await _until(lambda: gc.get_freeze_count() > 0)
    late = ref(_Knot())
    await _until(lambda: late() is None)
    task.cancel()


async def test_what_is_young_is_not_kept_for_the_next_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "COLLECT_EVERY_S", 600.0)
    task = asyncio.create_task(_run_for(60, is_idle=True))
    await _until(lambda: gc.get_freeze_count() > 0)
    few = ref(_Knot())
    await asyncio.sleep(0.1)
    assert few() is not None
    many = [_Knot() for _ in range(2 * garbage.MANY_YOUNG)]
    last = ref(many[-1])
    del many
    await _until(lambda: last() is None)
    assert few() is None
    task.cancel()


async def test_a_busy_process_waits_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    knot = ref(_Knot())
    await _run_for(0.2, is_idle=False)
    assert knot() is not None
    assert gc.get_freeze_count() == 0
    monkeypatch.setattr(garbage, "LONGEST_S", 0.02)
    task = asyncio.create_task(_run_for(60, is_idle=False))
    await _until(lambda: knot() is None)
    task.cancel()
