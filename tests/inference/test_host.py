"""Workers that hang, die while they load, or are asked twice under one id; with real processes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import monotonic
from unittest.mock import AsyncMock

import pytest

from inference import Engine, Failed, Finished, Loading, Tokens, Update
from inference.messages import EngineStats, StepFrame
from inference.needs import estimate_needs
from inference.supervisor import Supervisor
from inference.worker_process import log_words_of
from tests.engine_workers import engine_workers
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _ids, _request, _run

WATCHDOG_S = 1.5
ENDLESS = {"max_tokens": 300, "ignore_eos": True}


@pytest.fixture
async def watched(tiny_model: Path) -> AsyncIterator[Engine]:
    """A warm engine whose worker may be silent for a second and a half only."""
    config = engine_config(tiny_model, watchdog_s=WATCHDOG_S, max_num_sequences=1)
    engine = Engine(replace(config, max_num_drafting=0))  # answers have to last
    try:
        await _run(engine, _request("warm", PROMPTS[0]))
        yield engine
    finally:
        await engine.close()


def _pid(engine: Engine) -> int:
    pid = engine.worker_pid("tiny")
    assert pid is not None
    return pid


async def _until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = monotonic() + timeout_s
    while monotonic() < deadline_s:
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def test_a_reader_that_takes_its_time_is_no_hang(watched: Engine) -> None:
    pid = _pid(watched)
    updates = watched.generate(_request("slow", PROMPTS[1], max_tokens=20, ignore_eos=True))
    heard: list[Update] = [await anext(updates)]
    await asyncio.sleep(3 * WATCHDOG_S)
    assert watched.worker_pid("tiny") == pid
    heard += [update async for update in updates]
    assert len(_ids(heard)) == 20


async def test_waiting_behind_others_is_no_hang(watched: Engine) -> None:
    """One answer at a time, and one request that the others go before for longer than is allowed."""
    pid = _pid(watched)
    first = asyncio.create_task(_run(watched, _request("first", PROMPTS[0], **ENDLESS)))
    await asyncio.sleep(0.1)
    patient = replace(_request("patient", PROMPTS[0], max_tokens=2), priority="background")
    waiting = asyncio.create_task(_run(watched, patient))
    started_s = monotonic()
    ahead = {first}
    while monotonic() - started_s < 2 * WATCHDOG_S:
        while len(ahead) < 3:  # so that one is waiting whenever another ends
            ahead.add(asyncio.create_task(_run(watched, _request("ahead", PROMPTS[0], **ENDLESS))))
        _, ahead = await asyncio.wait(ahead, return_when=asyncio.FIRST_COMPLETED)
    assert not waiting.done()
    for updates in await asyncio.gather(waiting, *ahead):
        assert isinstance(updates[-1], Finished)
    assert watched.worker_pid("tiny") == pid


async def test_new_requests_do_not_hide_a_hang(watched: Engine) -> None:
    pid = _pid(watched)
    os.kill(pid, signal.SIGSTOP)
    requests = []
    for i in range(20):
        requests.append(
            asyncio.create_task(_run(watched, _request(f"r{i}", PROMPTS[0], max_tokens=2)))
        )
        await asyncio.sleep(WATCHDOG_S / 5)
        if watched.worker_pid("tiny") != pid:
            break
    assert watched.worker_pid("tiny") != pid, "it was replaced while requests came in"
    for updates in await asyncio.gather(*requests):
        assert isinstance(updates[-1], Finished)


async def test_a_worker_that_hangs_while_it_loads_is_replaced(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model, loading_watchdog_s=2.0))
    try:
        engine.load("tiny")
        await _until(lambda: engine.worker_pid("tiny") is not None)
        pid = _pid(engine)
        os.kill(pid, signal.SIGSTOP)
        await _until(lambda: engine.worker_pid("tiny") != pid, timeout_s=10)
        assert engine.state("tiny").state == "loading"
    finally:
        await engine.close()


async def test_a_model_that_loads_lets_no_more_wait_than_its_queue_holds(tiny_model: Path) -> None:
    """Chores take none of the room of others, and who had been accepted before is."""
    engine = Engine(engine_config(tiny_model, max_waiting_tokens=3 * (100 + 20)))
    wanted = _request("", (7,) * 100, max_tokens=20, ignore_eos=True)
    chore = replace(wanted, priority="background")
    crowd = [*[chore] * 5, *[wanted] * 200, replace(wanted, is_replay=True), chore]
    try:
        told = await asyncio.gather(*(_run(engine, request) for request in crowd))
    finally:
        await engine.close()
    ends = [updates[-1] for updates in told]
    refused = [end for end in ends if isinstance(end, Failed)]
    is_accepted = [isinstance(end, Finished) for end in ends]
    assert is_accepted == [*[True] * 3, *[False] * 2, *[True] * 3, *[False] * 197, True, False]
    assert {(end.code, end.retry_after_s) for end in refused} == {("overloaded", 5.0)}


async def test_an_answer_that_is_read_slowly_is_not_blamed(watched: Engine) -> None:
    """Ended, but not yet read to its end, when two workers die."""
    updates = watched.generate(_request("slow", PROMPTS[1], max_tokens=5, ignore_eos=True))
    heard: list[Update] = [await anext(updates)]
    await _run(watched, _request("behind it", PROMPTS[0], max_tokens=2))
    for _ in range(2):
        pid = _pid(watched)
        os.kill(pid, signal.SIGKILL)
        await _until(lambda pid=pid: watched.worker_pid("tiny") not in (pid, None))  # type: ignore[misc]
        await _until(lambda: watched.state("tiny").state == "ready")
    assert not any(isinstance(update, Failed | Loading) for update in _waiting(watched))
    heard += [update async for update in updates]
    assert isinstance(heard[-1], Finished)


def _waiting(engine: Engine) -> list[Update]:
    """What lies ready for the engine's only reader."""
    (flight,) = engine._host("tiny").flights.values()
    return list(flight._updates._queue)  # type: ignore[attr-defined]


async def test_a_model_whose_workers_die_while_loading_is_given_up(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model))
    killed: list[int] = []

    async def kill_all() -> None:
        while True:
            pid = engine.worker_pid("tiny")
            if pid is not None and pid not in killed:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.01)

    killer = asyncio.create_task(kill_all())
    try:
        async with asyncio.timeout(60):
            both = await asyncio.gather(
                *(_run(engine, _request(name, PROMPTS[0])) for name in ("one", "two"))
            )
        for updates in both:
            assert isinstance(updates[-1], Failed)
            assert updates[-1].code == "worker_died"
            assert "3 engine workers ended while they loaded the model" in updates[-1].message
        assert len(killed) == 3
        assert engine.state("tiny").state == "failed"

        (at_once,) = await _run(engine, _request("soon", PROMPTS[0]))
        assert isinstance(at_once, Failed)
        assert "while they loaded the model" in at_once.message
        assert at_once.retry_after_s is not None
        assert 0 < at_once.retry_after_s <= 60
        assert len(killed) == 3, "a request does not wake it"

        killer.cancel()
        engine.load("tiny")
        assert isinstance((await _run(engine, _request("after", PROMPTS[0])))[-1], Finished)
    finally:
        killer.cancel()
        await engine.close()


async def test_closing_at_any_moment_of_a_start_leaves_no_process(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(engine_config(tiny_model))
    before = engine_workers()
    # The files are looked at in a thread, which takes more turns of the loop than all the rest.
    needs = estimate_needs("tiny", tiny_model, engine.config, 2**30)
    monkeypatch.setattr(asyncio, "to_thread", AsyncMock(return_value=needs))
    for num_turns in range(20):
        engine.load("tiny")
        for _ in range(num_turns):
            await asyncio.sleep(0)
        await engine.close()
        async with asyncio.timeout(30):  # the fork of one that was closed meanwhile comes late
            while engine_workers() != before:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_two_requests_of_one_id_are_two_answers(engine: Engine) -> None:
    expected = _ids(await _run(engine, _request("calm", PROMPTS[1], **ENDLESS)))
    first = engine.generate(_request("same", PROMPTS[1], **ENDLESS))
    await _until_tokens(first)
    second = asyncio.create_task(_run(engine, _request("same", PROMPTS[1], **ENDLESS)))
    third = asyncio.create_task(_run(engine, _request("same", PROMPTS[2], **ENDLESS)))
    await asyncio.sleep(0.05)
    await first.aclose()
    async with asyncio.timeout(60):
        assert _ids(await second) == expected
        assert len(_ids(await third)) == 300
    await _run(engine, _request("after", PROMPTS[0]))
    assert engine.stats("tiny").kv_tokens_used == 0


async def test_an_id_may_be_used_again_right_after_leaving(engine: Engine) -> None:
    expected = _ids(await _run(engine, _request("calm", PROMPTS[1], **ENDLESS)))
    for _ in range(5):
        updates = engine.generate(_request("same", PROMPTS[1], **ENDLESS))
        await _until_tokens(updates)
        await updates.aclose()
    async with asyncio.timeout(60):
        assert _ids(await _run(engine, _request("same", PROMPTS[1], **ENDLESS))) == expected


async def test_an_abort_reaches_every_request_of_an_id_and_no_other(engine: Engine) -> None:
    await _run(engine, _request("warm", PROMPTS[0]))
    same = [
        asyncio.create_task(_run(engine, _request("same", PROMPTS[1], **ENDLESS))) for _ in range(2)
    ]
    other = engine.generate(_request("other", PROMPTS[1], **ENDLESS))
    heard = await _until_tokens(other)
    engine.abort("tiny", "same")
    heard += [update async for update in other]
    for updates in await asyncio.gather(*same):
        assert isinstance(updates[-1], Finished)
        assert updates[-1].reason == "abort"
    assert len(_ids(heard)) == 300


async def test_what_a_worker_writes_becomes_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    program = "import sys; sys.stderr.write('first\\n' + 'x' * 300_000 + '\\nlast')"
    words, words_end = os.pipe()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=words_end)
    async with asyncio.timeout(30):
        os.close(words_end)
        await log_words_of(words, "tiny")
    await process.wait()
    lines = [record.getMessage() for record in caplog.records]
    assert [len(line) for line in lines] == [len("worker of tiny: ") + n for n in (5, 300_000, 4)]
    assert lines[-1] == "worker of tiny: last"


async def _until_tokens(updates: AsyncIterator[Update]) -> list[Update]:
    heard = []
    async for update in updates:
        heard.append(update)
        if isinstance(update, Tokens):
            return heard
    raise AssertionError("it ended without a token")


async def test_a_straggler_is_told_once(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """A real worker's steps are what the pace is told by; made-up ones are then slower."""
    host = engine._host("tiny")
    heard: list[EngineStats] = []
    (worker,) = host.workers
    note_pace = worker._note_pace

    def hear(stats: EngineStats) -> None:
        heard.append(stats)
        note_pace(stats)

    worker._note_pace = hear  # type: ignore[method-assign]
    await _run(engine, _request("calm", PROMPTS[3], **ENDLESS))
    read = [stats for stats in heard if stats.num_read_tokens]
    assert sum(stats.num_read_tokens for stats in read) == len(PROMPTS[3])
    decoded = [stats for stats in heard if not stats.num_read_tokens and stats.num_decoded_tokens]
    assert sum(stats.num_decoded_tokens for stats in decoded) >= 299
    assert all(0 < stats.forward_ms <= stats.step_ms for stats in (*read, *decoded))

    calm = replace(decoded[-1], forward_ms=10.0)
    for _ in range(50):
        note_pace(calm)
    for _ in range(1000):
        note_pace(replace(calm, forward_ms=50.0))
    assert engine.state("tiny").is_straggling
    for _ in range(300):
        note_pace(calm)
    assert not engine.state("tiny").is_straggling
    words = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert words == [
        "the worker of tiny is a straggler: its steps take 5.0 times as long as they did when all"
        " was calm"
    ]


async def test_a_fault_of_the_supervisor_is_a_death_and_no_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would notice one that is no more: its model would look ready, and answer nothing."""
    request = _request("a", PROMPTS[1], max_tokens=20)
    expected = _ids(await _run(engine, request))
    hear = Supervisor._hear
    frames = count()

    def hear_badly(self: Supervisor, frame: StepFrame) -> None:
        if next(frames) == 5:
            raise RuntimeError("a fault")
        hear(self, frame)

    pid = _pid(engine)
    monkeypatch.setattr(Supervisor, "_hear", hear_badly)
    async with asyncio.timeout(60):
        assert _ids(await _run(engine, request)) == expected
    assert _pid(engine) != pid
    assert "a fault" in caplog.text
