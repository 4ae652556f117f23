"""A model that leaves its device and keeps its process: real workers, whose device is the processor."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

from inference import Engine, EngineConfig, Finished, GenerateRequest, Loading, placement
from inference.errors import ModelError
from inference.host_copy import HostCopy
from inference.needs import WORKER_BYTES, estimate_needs
from inference.supervisor import Supervisor
from tests.inference.conftest import engine_config
from tests.inference.gpus import gpu
from tests.inference.loops import PROMPTS, answers, make_loop, request
from tests.inference.test_engine import _ids, _request, _run
from tests.inference.test_host import _until
from tests.inference.tiny_models import make_model


def test_weights_go_and_come_back_as_they_were() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8))
    model[2].weight = model[0].weight  # of two layers, once
    x = torch.randn(5, 8)
    model.eval()
    expected, before = model(x), {n: t.clone() for n, t in model.state_dict().items()}
    for _ in range(2):
        copy = HostCopy(model)
        assert sum(t.nbytes for t in (*model.parameters(), *model.buffers())) == 0
        assert copy.num_bytes == sum(t.nbytes for n, t in before.items() if n != "2.weight")
        copy.restore()
        assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
        assert model[2].weight is model[0].weight
        assert torch.equal(model(x), expected)


@pytest.mark.parametrize("layout", ["slabs", "paged"])
def test_a_loop_answers_the_same_when_it_has_slept(tiny_model: Path, layout: str) -> None:
    loop = make_loop(tiny_model, kv_layout=layout)
    seeded = {"temperature": 1.0, "seed": 3}
    requests = [
        request(f"r{n}", prompt, **(seeded if n % 2 else {})) for n, prompt in enumerate(PROMPTS)
    ]
    expected = answers(loop, *requests)
    assert loop.kv.cached_tokens > 0
    num_bytes = loop.sleep()
    assert num_bytes == sum(t.numel() * 4 for t in _weights_of(tiny_model))
    assert (loop.kv.cached_tokens, loop.kv.used_tokens) == (0, 0)
    assert sum(t.nbytes for t in loop.runner.model.parameters()) == 0
    loop.check()
    loop.wake()
    again = [replace(one, request_id=f"again {one.request_id}") for one in requests]
    assert answers(loop, *again) == expected
    loop.check()


def test_a_loop_that_wakes_as_another_says_so(tiny_model: Path) -> None:
    loop = make_loop(tiny_model)
    loop.canary()
    loop.sleep()
    loop.wake()
    loop.sleep()
    assert loop.runner._copy is not None
    for copy in loop.runner._copy._copies:
        copy.host.zero_()
    with pytest.raises(ModelError, match="The canary token is another one than at first"):
        loop.wake()


def _weights_of(path: Path) -> list[torch.Tensor]:
    loop = make_loop(path)
    model = loop.runner.model
    return [*model.parameters(), *model.buffers()]


@asynccontextmanager
async def _engine(config: EngineConfig) -> AsyncIterator[Engine]:
    engine = Engine(config)
    try:
        async with asyncio.timeout(170):
            yield engine
    finally:
        await engine.close()


@pytest.fixture
def three(tiny_model: Path, tmp_path: Path) -> EngineConfig:
    for seed, name in enumerate("abc"):
        make_model(tmp_path / name, seed=seed, tokenizer=tiny_model)
    config = engine_config(tmp_path / "a", sleeps_on_host=True, sleep_after_s=0.0)
    entries = tuple(f"{name}={tmp_path / name}" for name in "abc")
    return replace(config, extra_models=entries, default_model="a")


def _ask(model: str, number: int = 0) -> GenerateRequest:
    return replace(_request(f"{model}{number}", PROMPTS[2]), model=model)


async def _asleep(engine: Engine, model: str) -> int:
    """The pid of the process of a model that sleeps on the host."""
    worker = engine._host(model).workers[0]
    await _until(lambda: worker.state == "asleep" and worker._berth.lying is not None)
    assert worker._berth.lying is not None
    return worker._berth.lying.process.pid


async def test_a_process_wakes_with_its_model_and_nothing_is_loaded_again(
    three: EngineConfig,
) -> None:
    async with _engine(three) as engine:
        first = await _run(engine, _ask("a"))
        pid = await _asleep(engine, "a")
        ledger = engine._placement.host.residency._ledger
        info = engine.info("a")
        assert info is not None
        assert ledger.held_bytes == info.weights_bytes + WORKER_BYTES, "its cache is given back"
        for number in range(2):
            again = await _run(engine, _ask("a", number))
            assert again[0] == Loading("waking", 0.0)
            assert _ids(again) == _ids(first)
            assert await _asleep(engine, "a") == pid
        assert engine._host("a").num_restarts == 0
    assert ledger.held_bytes == 0
    await _until(lambda: not psutil.pid_exists(pid))


async def test_one_that_dies_asleep_is_loaded_anew(three: EngineConfig) -> None:
    async with _engine(three) as engine:
        first = await _run(engine, _ask("a"))
        pid = await _asleep(engine, "a")
        os.kill(pid, signal.SIGKILL)
        assert _ids(await _run(engine, _ask("a", 1))) == _ids(first)
        assert await _asleep(engine, "a") != pid


async def test_who_sleeps_on_the_host_makes_room_there(three: EngineConfig) -> None:
    """Of three models, where there is memory for two and one that sleeps, less a byte."""
    path = Path(three.extra_models[0].partition("=")[2])
    awake_bytes = estimate_needs("a", path, three, 0).size_bytes
    config = replace(three, sleep_after_s=1.0)
    async with _engine(config) as engine:
        first = await _run(engine, _ask("a"))
        info = engine.info("a")
        assert info is not None
        pid = await _asleep(engine, "a")
        ledger = engine._placement.host.residency._ledger
        budget_bytes = 2 * awake_bytes + info.weights_bytes + WORKER_BYTES - 1
        ledger._measure = lambda: budget_bytes
        ledger._budget_bytes = budget_bytes
        stories = [replace(_request("long", PROMPTS[1], max_tokens=400), model=n) for n in "bc"]
        told = await asyncio.gather(*(_run(engine, story) for story in stories))
        assert all(isinstance(updates[-1], Finished) for updates in told)
        assert engine._host("a").workers[0]._berth.lying is None
        await _until(lambda: not psutil.pid_exists(pid))
        assert _ids(await _run(engine, _ask("a", 1))) == _ids(first)


async def test_two_models_take_turns_on_a_gpu_and_keep_their_processes(
    three: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = placement.Placement
    small = gpu("a", free_gib=0.8)
    monkeypatch.setattr("inference.engine.Placement", lambda config: make(config, lambda: [small]))
    monkeypatch.setattr(Supervisor, "_check_place", lambda self, info: None)
    config = replace(three, sleeps_on_host=None, sleep_after_s=None, kv_bytes=None)
    async with _engine(config) as engine:
        pids: dict[str, set[int]] = {"a": set(), "b": set()}
        said: dict[str, list[list[int]]] = {"a": [], "b": []}
        (on_gpu,) = engine._placement._on_gpus
        for number in range(3):
            for name in "ab":
                said[name].append(_ids(await _run(engine, _ask(name, number))))
                pid = engine.worker_pid(name)
                assert pid is not None
                pids[name].add(pid)
                other = "b" if name == "a" else "a"
                assert engine.state(other).state in ("asleep", "cold")
                ledger = on_gpu.residency._ledger
                assert ledger.held_bytes <= ledger.budget_bytes()
        assert {name: len(found) for name, found in pids.items()} == {"a": 1, "b": 1}
        assert all(answer == found[0] for found in said.values() for answer in found)
