"""A window lets through exactly what it may, however many ask, in Redis and without it."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from django.conf import LazySettings
from redis.asyncio import Redis

from chat import windows
from chat.windows import Admission, LocalWindows, Window, admit

pytestmark = pytest.mark.usefixtures("clean_redis")

_names = (f"test{n}" for n in itertools.count())


@pytest.fixture(params=["redis", "local"])
async def where(
    request: pytest.FixtureRequest, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Redis, or a process whose Redis is away."""
    monkeypatch.setattr(windows, "_local", LocalWindows())
    monkeypatch.setattr(windows, "_away_until_s", 0.0)
    if request.param == "local":
        settings.REDIS_URL = "unix:///nowhere.sock"
    yield request.param
    await windows.close()


def a_window(limit: int, period_s: float = 60.0) -> Window:
    return Window(next(_names), limit, period_s)


def admitted(admissions: list[Admission]) -> int:
    return sum(admission.is_admitted for admission in admissions)


async def test_of_two_hundred_at_once_exactly_the_limit_passes(where: str) -> None:
    window = a_window(10)
    outcomes = await asyncio.gather(*(admit([window]) for _ in range(200)))
    assert admitted(outcomes) == 10
    remaining = sorted(a.counts[0].remaining for a in outcomes if a.is_admitted)
    assert remaining == list(range(10))


@pytest.mark.parametrize("limit", [0, 7, 40])
async def test_who_asks_at_once_is_told_as_one_after_the_other(where: str, limit: int) -> None:
    wide, narrow, alone = a_window(100), a_window(limit), a_window(limit)
    together = await asyncio.gather(*(admit([wide, narrow], 2) for _ in range(12)))
    for one in together:
        expected = await admit([alone], 2)
        assert one.is_admitted == expected.is_admitted
        assert one.counts[1].remaining == expected.counts[0].remaining
        assert one.counts[1].wait_s == pytest.approx(expected.counts[0].wait_s, abs=5)
    left = (await admit([wide])).counts[0].remaining
    assert left == 99 - 2 * admitted(together), "what did not pass is counted nowhere"


async def test_different_questions_share_a_window(where: str) -> None:
    shared = a_window(9)
    asked = [[shared], [shared, a_window(50)], [shared, a_window(50)]] * 4
    outcomes = await asyncio.gather(*map(admit, asked))
    assert admitted(outcomes) == 9


async def test_room_comes_back_one_by_one(where: str) -> None:
    window = a_window(2, period_s=0.4)
    assert (await admit([window])).is_admitted
    await asyncio.sleep(0.2)
    assert (await admit([window])).is_admitted
    refused = await admit([window])
    assert not refused.is_admitted
    assert 0 < refused.wait_s <= 0.21
    await asyncio.sleep(refused.wait_s + 0.01)
    assert (await admit([window])).is_admitted
    assert not (await admit([window])).is_admitted


async def test_what_one_window_refuses_costs_nothing_in_the_others(where: str) -> None:
    wide, narrow = a_window(5), a_window(1)
    assert (await admit([wide, narrow])).is_admitted
    for _ in range(3):
        assert not (await admit([wide, narrow])).is_admitted
    assert (await admit([wide])).counts[0].remaining == 3


async def test_a_request_may_count_several_times(where: str) -> None:
    window = a_window(5)
    assert (await admit([window], 3)).counts[0].remaining == 2
    assert not (await admit([window], 3)).is_admitted
    assert (await admit([window], 2)).counts[0].remaining == 0
    impossible = await admit([a_window(2)], 3)
    assert (impossible.is_admitted, impossible.wait_s) == (False, 60.0)


async def test_a_limit_of_none_at_all_lets_nothing_through(where: str) -> None:
    refused = await admit([a_window(0)])
    assert (refused.is_admitted, refused.wait_s) == (False, 60.0)


async def test_the_tightest_window_is_the_one_to_go_by(where: str) -> None:
    wide, narrow = a_window(100), a_window(3)
    admission = await admit([wide, narrow])
    assert admission.tightest is not None
    assert (admission.tightest.window, admission.tightest.remaining) == (narrow, 2)
    assert 0 < admission.tightest.reset_s <= 60


async def test_when_redis_goes_away_nobody_starts_afresh(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_local", LocalWindows())
    monkeypatch.setattr(windows, "_away_until_s", 0.0)
    window = a_window(4)
    for _ in range(3):
        assert (await admit([window])).is_admitted
    await windows.close()
    settings.REDIS_URL = "unix:///nowhere.sock"
    assert (await admit([window])).is_admitted
    assert not (await admit([window])).is_admitted
    await windows.close()


async def test_windows_leave_nothing_behind(settings: LazySettings) -> None:
    window = a_window(3, period_s=0.2)
    await admit([window])
    await windows.close()
    redis = Redis.from_url(settings.REDIS_URL)
    try:
        assert await redis.exists(f"vitrine:window:{window.key}")
        await asyncio.sleep(0.3)
        assert not await redis.exists(f"vitrine:window:{window.key}")
    finally:
        await redis.aclose()


def test_a_process_forgets_windows_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_MAX_LOCAL", 10)
    local, used = LocalWindows(), a_window(1)
    local.admit([used])
    for number in range(50):
        local.admit([replace(used, key=f"other{number}")])
        local.admit([used])
    assert len(local._logs) <= 10
    assert not local.admit([used]).is_admitted
