"""Several workers of one model: who gets which request, and what their deaths cost; real processes."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference import Engine, Failed, Finished, GenerateRequest, Loading, Update
from inference.config import parse_workers
from inference.flights import Flight
from inference.needs import estimate_needs
from inference.supervisor import Supervisor
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _end, _ids, _request, _run
from tests.inference.test_host import _until

TWO = (("tiny", 2),)
LONG = {"max_tokens": 200, "ignore_eos": True}


@pytest.fixture
async def engine(tiny_model: Path) -> AsyncIterator[Engine]:
    """Two workers, both ready."""
    running = Engine(engine_config(tiny_model, workers=TWO, max_restarts_per_minute=12))
    running.load("tiny")
    await _until(lambda: running.state("tiny").num_ready == 2, timeout_s=300)
    yield running
    await running.close()


def _workers(engine: Engine) -> list[Supervisor]:
    return engine._host("tiny").workers


@pytest.fixture
def boardings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Which request went on board of which worker, in time."""
    seen: list[tuple[str, str]] = []
    take = Supervisor.take

    def noting(worker: Supervisor, flight: Flight) -> None:
        seen.append((flight.request_id, worker.name))
        take(worker, flight)

    monkeypatch.setattr(Supervisor, "take", noting)
    return seen


def _salted(name: str, number: int, **params: object) -> GenerateRequest:
    """Of a user of its own, so that nothing is shared with another."""
    request = _request(name, PROMPTS[3], **params)
    return replace(request, cache_salt=f"salt {number}", user=f"user {number}")


async def test_a_conversation_goes_back_to_its_worker_and_finds_what_it_has_read(
    engine: Engine, boardings: list[tuple[str, str]]
) -> None:
    first = [_salted(f"talk {n}", n) for n in range(4)]
    answers = await asyncio.gather(*(_run(engine, request) for request in first))
    assert set(Counter(worker for _, worker in boardings).values()) == {2}, "two each"
    for turn in range(3):
        for number in (2, 0, 3, 1):
            request = first[number]
            prompt = (*request.prompt_ids, *_ids(answers[number]), *range(9, 9 + turn))
            again = await _run(engine, replace(request, prompt_ids=prompt))
            assert _end(again).usage.cached_tokens >= len(request.prompt_ids)
    homes = {name: {worker for n, worker in boardings if n == name} for name, _ in boardings}
    assert all(len(workers) == 1 for workers in homes.values())


async def test_a_crowd_is_spread_and_siblings_are_not(
    engine: Engine, boardings: list[tuple[str, str]]
) -> None:
    crowd = [_salted(f"crowd {n}", n, max_tokens=30) for n in range(12)]
    updates = await asyncio.gather(*(_run(engine, request) for request in crowd))
    assert all(isinstance(u[-1], Finished) for u in updates)
    assert min(Counter(worker for _, worker in boardings).values()) >= 4
    boardings.clear()
    choices = [_salted(f"choice {n}", 99, max_tokens=30, temperature=1.0, seed=n) for n in range(8)]
    await asyncio.gather(*(_run(engine, request) for request in choices))
    assert len({worker for _, worker in boardings}) == 1


async def test_a_worker_that_is_slow_gets_less(
    engine: Engine, boardings: list[tuple[str, str]]
) -> None:
    slow, other = _workers(engine)
    slow.pace.is_slow = True
    crowd = [_salted(f"crowd {n}", n, **LONG) for n in range(10)]
    running = [asyncio.create_task(_run(engine, request)) for request in crowd]
    await _until(lambda: len(boardings) == 10)
    assert engine.state("tiny").is_straggling
    counts = Counter(worker for _, worker in boardings)
    assert counts[other.name] >= 3 * counts[slow.name]
    await asyncio.gather(*running)


async def test_one_user_of_many_requests_does_not_make_another_wait_on_both_workers(
    engine: Engine,
) -> None:
    """Fair within each worker: a lone request is there before those that came before it."""
    crowd = [replace(_salted(f"many {n}", n, **LONG), user="many") for n in range(48)]
    running = [asyncio.create_task(_run(engine, request)) for request in crowd]
    await asyncio.sleep(0.2)
    await _run(engine, _salted("lone", 100, max_tokens=5))
    assert sum(task.done() for task in running) < 40
    for updates in await asyncio.gather(*running):
        assert isinstance(updates[-1], Finished)


async def test_a_kill_of_one_of_two_costs_no_stream_a_token(engine: Engine) -> None:
    seeded = {"temperature": 1.0, "seed": 11}
    requests = [_salted(f"r{n}", n, **LONG, **(seeded if n % 2 else {})) for n in range(8)]
    calm = [_ids(await _run(engine, request)) for request in requests]
    heard: list[list[Update]] = [[] for _ in requests]
    killed: list[int] = []

    async def listen(number: int) -> None:
        fresh = replace(requests[number], cache_salt=f"storm {number}")
        async for update in engine.generate(fresh):
            heard[number].append(update)
            if not killed and all(_ids(updates) for updates in heard):
                killed.append(engine.worker_pids("tiny")[0])
                os.kill(killed[0], signal.SIGKILL)

    await asyncio.gather(*map(listen, range(8)))
    assert killed
    assert [_ids(updates) for updates in heard] == calm
    assert all(isinstance(updates[-1], Finished) for updates in heard)
    assert engine.state("tiny").state == "ready", "the other one was there all the time"
    told = [update for updates in heard for update in updates[5:] if isinstance(update, Loading)]
    assert told == [], "nobody had to wait for a worker to load"
    await _until(lambda: engine.state("tiny").num_ready == 2)
    assert killed[0] not in engine.worker_pids("tiny")


async def test_a_kill_of_one_of_two_with_full_queues_ends_no_answer_that_was_accepted(
    tiny_model: Path,
) -> None:
    """The other one has no room for more, but these are no newcomers."""
    limits: dict[str, Any] = {"max_num_sequences": 2, "max_waiting_tokens": 1000}
    engine = Engine(engine_config(tiny_model, workers=TWO, **limits))
    requests = [_salted(f"r{n}", n, **LONG) for n in range(16)]
    heard: list[list[Update]] = [[] for _ in requests]
    refused: set[int] = set()
    killed: list[int] = []

    async def listen(number: int) -> None:
        async for update in engine.generate(requests[number]):
            heard[number].append(update)
            if isinstance(update, Failed):
                assert update.code == "overloaded"
                # Whose refusal was on its way at the kill is one, too: it has heard of nothing else.
                assert heard[number] == [update], "only newcomers are refused"
                refused.add(number)
            num_writing = sum(bool(_ids(updates)) for updates in heard)
            if not killed and refused and num_writing >= 4:
                killed.append(engine.worker_pids("tiny")[0])
                os.kill(killed[0], signal.SIGKILL)

    try:
        engine.load("tiny")
        await _until(lambda: engine.state("tiny").num_ready == 2, timeout_s=300)
        calm = [_ids(await _run(engine, request)) for request in requests]
        requests = [replace(r, cache_salt=f"storm {r.cache_salt}") for r in requests]
        await asyncio.gather(*map(listen, range(16)))
    finally:
        await engine.close()
    assert killed, [(len(_ids(h)), type(h[-1])) for h in heard]
    assert len(refused) < 12, "some waited for each worker"
    for number in set(range(16)) - refused:
        assert _ids(heard[number]) == calm[number]


async def test_what_kills_every_worker_fails_alone(engine: Engine) -> None:
    """Whatever was on board with it comes one after the other, so that it is there alone."""
    poison = _salted("poison", 0, max_tokens=300, ignore_eos=True)
    others = [_salted(f"r{n}", n, **LONG) for n in range(1, 7)]
    host = engine._host("tiny")

    async def kill_those_with_it_on_board() -> None:
        """At the token that it had come to at first, however often it is tried."""
        killed: set[int] = set()
        while True:
            for worker in host.workers:
                on_board = {flight.request_id for flight in worker.on_board.values()}
                if "poison" not in on_board or worker.pid is None or worker.pid in killed:
                    continue
                if not killed and len(on_board) < 3:
                    continue
                os.kill(worker.pid, signal.SIGSTOP)  # before it can write another token
                os.kill(worker.pid, signal.SIGKILL)
                killed.add(worker.pid)  # and not waited for: it is on board of the other one soon
            await asyncio.sleep(0)

    killing = asyncio.create_task(kill_those_with_it_on_board())
    both = await asyncio.gather(*(_run(engine, request) for request in (poison, *others)))
    killing.cancel()
    assert isinstance(both[0][-1], Failed)
    assert both[0][-1].code == "generation_failed"
    for updates in both[1:]:
        assert isinstance(updates[-1], Finished), updates[-1]
        assert len(_ids(updates)) == 200
    assert host.num_restarts == 2


async def test_as_many_workers_wake_as_there_are_requests(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model, workers=TWO))
    try:
        await _run(engine, _salted("alone", 0))
        assert [worker.state for worker in _workers(engine)] == ["ready", "cold"]
        assert engine.state("tiny").num_workers == 2
        requests = [_salted(f"r{n}", n, **LONG) for n in range(4)]
        running = [asyncio.create_task(_run(engine, request)) for request in requests]
        await _until(lambda: all(worker.is_awake for worker in _workers(engine)))
        assert engine.state("tiny").state == "ready", "nobody waits for the second one"
        await asyncio.gather(*running)
    finally:
        await engine.close()
    assert engine.state("tiny").state == "cold"


async def test_all_workers_sleep_and_a_request_wakes_one(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model, workers=TWO, sleep_after_s=0.0))
    try:
        engine.load("tiny")
        await _until(lambda: all(worker.state == "asleep" for worker in _workers(engine)))
        assert engine.state("tiny").state == "asleep"
        woken = await _run(engine, _salted("woken", 0))
        assert woken[0] == Loading("waking", 0.0)
        assert isinstance(woken[-1], Finished)
        assert sum(worker.num_restarts for worker in _workers(engine)) == 0
        await _until(lambda: engine.state("tiny").state == "asleep")
    finally:
        await engine.close()


async def test_memory_for_one_worker_makes_one_and_no_request_waits(tiny_model: Path) -> None:
    config = engine_config(tiny_model, workers=TWO)
    needed_bytes = estimate_needs("tiny", tiny_model, config, 0).size_bytes
    engine = Engine(replace(config, memory_bytes=needed_bytes * 3 // 2))
    try:
        engine.load("tiny")
        requests = [_salted(f"r{n}", n) for n in range(4)]
        updates = await asyncio.gather(*(_run(engine, request) for request in requests))
        assert all(isinstance(each[-1], Finished) for each in updates)
        state = engine.state("tiny")
        assert (state.state, state.num_ready, state.num_workers) == ("ready", 1, 2)
        assert len(engine.worker_pids("tiny")) == 1
    finally:
        await engine.close()


def test_caches_and_threads_are_shared_out(tiny_model: Path) -> None:
    config = replace(engine_config(tiny_model), kv_bytes=None, num_threads=5)
    gib = 2**30
    one = estimate_needs("tiny", tiny_model, config, 4 * gib)
    two = estimate_needs("tiny", tiny_model, replace(config, workers=TWO), 4 * gib)
    assert 2 * two.kv_bytes < one.kv_bytes
    assert 2 * two.size_bytes < 4 * gib
    host = Engine(replace(config, workers=TWO))._host("tiny")
    assert [worker.config.num_threads for worker in host.workers] == [2, 2]


def test_numbers_of_workers_are_parsed_and_nonsense_is_refused(tiny_model: Path) -> None:
    config = replace(engine_config(tiny_model), workers=parse_workers(["3", "org/a=2", "a=b=4"]))
    assert [config.num_workers(name) for name in ("tiny", "org/a", "a=b")] == [3, 2, 4]
    assert engine_config(tiny_model).num_workers("tiny") == 1
    for wrong in (["0"], ["many"], ["a="], ["=2"], ["a=0"], ["a=65"], ["1", "2"], ["a=1", "a=2"]):
        with pytest.raises(ValueError, match=r"workers there are|is not MODEL=NUMBER"):
            parse_workers(wrong)
