"""Several models and memory for some of them: who sleeps, who wakes, and nobody is lost over it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from inference import Engine, EngineConfig, Failed, Finished, GenerateRequest, Loading, Update
from inference.needs import estimate_needs
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _ids, _request, _run
from tests.inference.test_host import _until
from tests.inference.tiny_models import make_model

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def three_models(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("three")
    for seed, name in enumerate(NAMES):
        make_model(path / name, seed=seed, tokenizer=tiny_model)
    return path


def _config(path: Path, num_awake: int, **settings: object) -> EngineConfig:
    """Three models, and memory for so many at once."""
    config = replace(
        engine_config(path / "a", **settings),
        extra_models=tuple(f"{name}={path / name}" for name in NAMES),
        default_model="a",
    )
    needed_bytes = estimate_needs("a", path / "a", config, 0).size_bytes
    return replace(config, memory_bytes=num_awake * needed_bytes + needed_bytes // 2)


@asynccontextmanager
async def _engine(config: EngineConfig) -> AsyncIterator[Engine]:
    engine = Engine(config)
    try:
        async with asyncio.timeout(300):
            yield engine
    finally:
        await engine.close()


def _ask(model: str, number: int = 0) -> GenerateRequest:
    return replace(_request(f"{model}{number}", PROMPTS[number % 4]), model=model)


def _states(engine: Engine) -> list[str]:
    return [engine.state(name).state for name in NAMES]


def _phases(updates: list[Update]) -> list[str]:
    return [update.phase for update in updates if isinstance(update, Loading)]


async def test_three_models_take_turns_in_memory_for_two(three_models: Path) -> None:
    most_workers = 0

    async def count_workers(engine: Engine) -> None:
        nonlocal most_workers
        async for _ in engine.changes():
            most_workers = max(most_workers, sum(engine.worker_pid(n) is not None for n in NAMES))

    async with _engine(_config(three_models, 2)) as engine:
        counting = asyncio.create_task(count_workers(engine))
        first = [_ids(await _run(engine, _ask(name))) for name in "ab"]
        assert _states(engine) == ["ready", "ready", "cold"]
        first.append(_ids(await _run(engine, _ask("c"))))
        assert _states(engine) == ["asleep", "ready", "ready"], "a has been idle for longest"
        assert engine.state("a").max_context_tokens == 512, "what is known of it stays known"
        woken = await _run(engine, _ask("a"))
        assert _states(engine) == ["ready", "asleep", "ready"]
        assert _phases(woken)[0] == "waking"
        assert _ids(woken) == first[0]
        assert len({tuple(ids) for ids in first}) == 3

        crowd = [_ask(name, number) for number in range(3) for name in "bca"]
        stories = await asyncio.gather(*(_run(engine, request) for request in crowd))
        assert all(isinstance(updates[-1], Finished) for updates in stories)
        assert [_ids(updates) for updates in stories[:3]] == [first[1], first[2], first[0]]
        counting.cancel()
    assert most_workers == 2


async def test_a_model_in_use_ends_its_answers_before_it_sleeps(three_models: Path) -> None:
    """What comes for it meanwhile waits behind the other model, so that both have their turns.

    The worker is stopped while the requests arrive, so that they do so in time.
    """
    ends: list[str] = []

    async def run(request: GenerateRequest) -> list[Update]:
        updates = await _run(engine, request)
        ends.append(request.request_id)
        return updates

    async with _engine(_config(three_models, 1)) as engine:
        await _run(engine, _ask("a"))
        pid = engine.worker_pid("a")
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        on_board = asyncio.create_task(run(_ask("a", 1)))
        await _until_waiting(engine, "b")
        assert engine.state("b").state == "cold", "who wanted it has left"
        beside = asyncio.create_task(run(_ask("a", 2)))
        other = asyncio.create_task(run(_ask("b")))
        await _until(lambda: engine.state("b").detail == "waiting for memory")
        late = asyncio.create_task(run(_ask("a", 3)))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGCONT)
        for early in (on_board, beside):
            assert _phases(await early) == [], "who left holds up nobody"
        assert "waiting for memory" in _phases(await other)
        assert _phases(await late)[:2] == ["waiting for memory", "waking"]
        assert set(ends[:2]) == {"a1", "a2"}
        assert ends[2:] == ["b0", "a3"]


async def _until_waiting(engine: Engine, model: str) -> None:
    """Ask a model, and leave as soon as it waits for memory."""
    async with aclosing(engine.generate(_ask(model))) as updates:
        async for update in updates:
            if update == Loading("waiting for memory", 0.0):
                return


async def test_a_model_that_nobody_uses_sleeps_and_any_request_wakes_it(three_models: Path) -> None:
    """Asked while it falls asleep, killed while it wakes: each request has its answer."""
    async with _engine(_config(three_models, 1, sleep_after_s=0.0)) as engine:
        expected = _ids(await _run(engine, _ask("a")))
        first_pid = engine.worker_pid("a")
        await _until(lambda: engine.state("a").state == "asleep")  # its worker is still ending
        waking = asyncio.create_task(_run(engine, _ask("a")))
        await _until(lambda: engine.worker_pid("a") not in (first_pid, None))
        pid = engine.worker_pid("a")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert _ids(await waking) == expected
        await _until(lambda: engine.state("a").state == "asleep")
        await _until(lambda: engine.worker_pid("a") is None)


async def test_a_model_that_can_never_fit_is_refused_with_both_numbers(three_models: Path) -> None:
    config = replace(_config(three_models, 1), memory_bytes=100 * 2**20)
    async with _engine(config) as engine:
        updates = await _run(engine, _ask("a"))
        assert engine.worker_pid("a") is None
        assert engine.state("a").state == "failed"
    assert isinstance(updates[-1], Failed)
    assert updates[-1].code == "model_too_large"
    assert "needs about 0.4 GiB" in updates[-1].message
    assert "0.1 GiB are there for all models together" in updates[-1].message


async def test_there_is_room_for_what_takes_it_from_nobody(three_models: Path) -> None:
    async with _engine(_config(three_models, 2)) as engine:
        assert await engine.has_room("c")
        await _run(engine, _ask("a"))
        assert await engine.has_room("c")
        await _run(engine, _ask("b"))
        assert await engine.has_room("a"), "it is there"
        assert not await engine.has_room("c"), "one of them would have to go"
        assert _states(engine) == ["ready", "ready", "cold"], "to ask loads nothing"
        await engine.unload("a")
        assert await engine.has_room("c")
