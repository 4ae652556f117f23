"""Other servers that fail, are silent or busy rest for a while, and the others are asked."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from inference import (
    Failed,
    Finished,
    parse_upstream,
)
from inference.upstreams import replicas, upstream
from tests.inference.far import HELLO, Far, spec_of, text_of
from tests.upstream_server import UpstreamServer, chunk, events, status, stream, texts, wired


def test_many_failures_at_once_are_one_rest() -> None:
    """Of thirteen answers that one crash broke off, ten tell nothing new."""
    servers = replicas.Replicas(("http://x",))
    for _ in range(13):
        servers.all[0].failed()
    assert servers.all[0].num_failures == replicas.MAX_FAILURES
    assert 0 < servers.rest_s <= replicas.FIRST_REST_S


async def test_a_long_answer_hides_nothing_that_others_hear(
    server: UpstreamServer, far: Far
) -> None:
    """Who was told to wait does so, and failures in a row stay in a row."""
    replica = far.engine._upstream("far").replicas.all[0]
    full = status(429, {"error": {"message": "wait"}}, Retry_After="1.5")
    server.answers = [events(*texts(*["word "] * 120), pause_s=0.02), full, status(500), HELLO]
    long_one = asyncio.create_task(far.ask())
    while not replica.num_running or not server.asked:  # noqa: ASYNC110  in another thread
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    since_s = monotonic()
    others = asyncio.create_task(far.ask())
    while not replica.num_failures:  # noqa: ASYNC110  set by the third answer
        await asyncio.sleep(0.01)
    assert monotonic() - since_s >= 1.5
    await asyncio.sleep(0.1)
    assert replica.num_failures == 1, "five words later"
    assert text_of(await others) == "Hello."
    await long_one


def test_who_asks_for_a_busy_server_gets_it() -> None:
    servers = replicas.Replicas(("http://x",))
    servers.all[0].is_busy_for(30.0)
    assert servers.are_resting
    servers.all[0].succeeded()
    assert servers.are_resting
    servers.try_again()
    assert not servers.are_resting


async def test_a_server_that_speaks_again_is_back_at_once(server: UpstreamServer, far: Far) -> None:
    replica = far.engine._upstream("far").replicas.all[0]
    replica.num_failures = 3  # and its rest is over
    server.answers = [events(*texts(*["word "] * 100), pause_s=0.02), HELLO]
    long_one = asyncio.create_task(far.ask())
    while replica.num_failures:  # noqa: ASYNC110  until its first word
        await asyncio.sleep(0.01)
    assert text_of(await far.ask()) == "Hello."
    await long_one


async def test_who_finds_all_servers_on_trial_waits(
    server: UpstreamServer, other: UpstreamServer, pair: Far
) -> None:
    slow = stream("", *wired(*texts("Hel", "lo.")), pause_s=0.4)
    for one, replica in zip(
        (server, other), pair.engine._upstream("far").replicas.all, strict=True
    ):
        one.answers = [slow]
        replica.num_failures = 3  # and its rest is over
    for updates in await asyncio.gather(*(pair.ask() for _ in range(4))):
        assert text_of(updates) == "Hello."


IDLE = [": keep-alive\n\n", "event: ping\n\n"] * 100


@pytest.mark.parametrize(
    "silent", [events(hangs_s=20), stream(*IDLE, pause_s=0.1)], ids=["nothing", "comments"]
)
async def test_a_silent_server_is_left(
    server: UpstreamServer,
    other: UpstreamServer,
    tmp_path: Path,
    silent: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream, "MAX_PINGED", 1)
    far = Far(spec_of(server, other, options="&timeout=1"), tmp_path)
    server.answers = [silent]
    try:
        assert text_of(await asyncio.wait_for(far.ask(), 10)) == "Hello."
    finally:
        await far.engine.close()


async def test_a_slow_server_is_not_silent(
    server: UpstreamServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may take longer than any silence in it, and its end needs no goodbye."""
    monkeypatch.setattr(upstream, "MAX_PINGED", 1)
    far = Far(spec_of(server, options="&timeout=1"), tmp_path)
    said = wired(*[chunk(content="word ")] * 4, chunk("stop"))
    server.answers = [stream(*said, *IDLE, pause_s=0.4)]
    try:
        updates = await asyncio.wait_for(far.ask(), 10)
    finally:
        await far.engine.close()
    assert text_of(updates) == "word " * 4
    assert isinstance(updates[-1], Finished)
    assert len(server.asked) == 1


async def test_servers_that_fail_rest_and_come_back(
    server: UpstreamServer, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "FIRST_REST_S", 30.0)
    server.answers = [status(500)]
    end = (await far.ask())[-1]
    assert isinstance(end, Failed)
    assert len(server.asked) == replicas.MAX_FAILURES
    assert far.engine.state("far").state == "failed"
    end = (await far.ask())[-1]
    assert isinstance(end, Failed)
    assert end.code == "upstream_unavailable"
    assert end.retry_after_s is not None
    assert 0 < end.retry_after_s <= 30
    assert len(server.asked) == replicas.MAX_FAILURES, "it was left alone"
    server.answers = [HELLO]
    far.engine.load("far")
    assert text_of(await far.ask()) == "Hello."
    assert far.engine.state("far").state == "ready"


async def test_a_rest_is_waited_for_once(
    server: UpstreamServer, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ask meanwhile; and not beyond the engine's end."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    upstream = far.engine._upstream("far")

    def call_later(delay_s: float, call: Any, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        timer = type(loop).call_later(loop, delay_s, call, *args, **kwargs)
        if call == upstream.tell_if_changed:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", call_later)
    upstream.replicas.all[0].is_busy_for(30.0)
    for _ in range(5):
        assert isinstance((await far.ask())[-1], Failed)
    assert [timer.cancelled() for timer in timers] == [True] * 4 + [False]
    assert far.engine.state("far").state == "failed"
    await far.engine.close()
    assert timers[-1].cancelled()


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    spec = parse_upstream("far=http://127.0.0.1:9/v1", lambda _: None)
    far = Far(spec, tmp_path)
    try:
        end = (await far.ask())[-1]
    finally:
        await far.engine.close()
    assert isinstance(end, Failed)
    assert end.code == "upstream_unavailable"
    assert "127.0.0.1:9" in end.message


async def test_the_least_busy_server_is_asked(
    server: UpstreamServer, other: UpstreamServer, pair: Far
) -> None:
    slow = events(*texts(*["."] * 10), pause_s=0.05)
    server.answers, other.answers = [slow], [slow]
    await asyncio.gather(*(pair.ask() for _ in range(8)))
    assert (len(server.asked), len(other.asked)) == (4, 4)
