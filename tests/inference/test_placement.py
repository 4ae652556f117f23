"""Workers on GPUs of their own: real processes on the processor, which are told that they have GPUs."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import Engine, Finished, placement
from inference.engine import Engine as _Engine
from inference.ledger import Ledger, NoSpareMemory
from inference.needs import Needs, gpu_share
from inference.nvml import GpuReading
from inference.placement import Placement, groups
from inference.supervisor import Supervisor
from inference.worker_process import worker_environment
from tests.inference.conftest import engine_config
from tests.inference.gpus import GIB, gpu
from tests.inference.test_engine import PROMPTS, _ids, _request, _run
from tests.inference.test_host import _until
from tests.inference.tiny_models import make_model

LONG = {"max_tokens": 200, "ignore_eos": True}


@given(num_gpus=st.integers(0, 16), sizes=st.lists(st.integers(1, 9)))
def test_no_gpu_is_in_two_groups(num_gpus: int, sizes: list[int]) -> None:
    gpus = [f"GPU-{n}" for n in range(num_gpus)]
    made = groups(gpus, sizes)
    assert sorted(one for group in made for one in group) == sorted(gpus)
    split = [len(group) for group in made if len(group) > 1]
    assert len(set(split)) == len(split)
    assert set(split) <= set(sizes)
    if num_gpus >= sum({size for size in sizes if size > 1}):
        assert set(split) == {size for size in sizes if size > 1}


@given(
    weights=st.lists(st.integers(1, 10**11), min_size=1, max_size=6),
    budget=st.integers(1, 2 * 10**11),
)
def test_shares_of_a_gpu_fit_into_it_or_are_all_of_it(weights: list[int], budget: int) -> None:
    shares = [
        gpu_share(own, weights[:index] + weights[index + 1 :], budget)
        for index, own in enumerate(weights)
    ]
    usable = budget - budget // 32
    assert sum(shares) <= usable or set(shares) == {usable}
    if sum(weights) <= usable - usable // 4:
        assert sum(shares) <= usable
        assert all(share >= own for share, own in zip(shares, weights, strict=True))
    else:
        assert set(shares) == {usable}, "they take turns"


def test_a_worker_is_told_its_gpus_and_no_others(tiny_model: Path) -> None:
    config = engine_config(tiny_model)
    told = worker_environment(config, ["GPU-b", "GPU-c"])
    assert told["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-c"
    assert worker_environment(config, []).get("CUDA_VISIBLE_DEVICES") == os.environ.get(
        "CUDA_VISIBLE_DEVICES"
    )


def test_a_worker_that_computes_on_the_processor_sees_no_gpus(tiny_model: Path) -> None:
    config = engine_config(tiny_model, device="cpu")
    assert worker_environment(config, [])["CUDA_VISIBLE_DEVICES"] == ""


def test_models_spread_over_gpus_and_a_split_one_has_its_own(tiny_model: Path) -> None:
    config = engine_config(tiny_model, tensor_parallel=(("wide", 2),))
    places = Placement(config, lambda: [gpu(letter) for letter in "abcd"])
    wide = places.choose("wide", is_chat=True)
    assert wide.gpus == ("GPU-c", "GPU-d")
    assert places.choose("mini", is_chat=False) is places.host
    first = places.choose("one", is_chat=True)
    with places.at(first, "one"):
        second = places.choose("one", is_chat=True)
        assert {first.gpus, second.gpus} == {("GPU-a",), ("GPU-b",)}
        assert places.choose("two", is_chat=True) is second
        with places.at(second, "two"), places.at(second, "two"):
            assert places.choose("three", is_chat=True) is first
            assert places.choose("one", is_chat=True) is second, "not beside its sibling"
    places.keep_on_host("one")
    assert places.choose("one", is_chat=True) is places.host


def test_the_budget_is_what_the_fullest_gpu_of_a_group_has_free(tiny_model: Path) -> None:
    config = engine_config(tiny_model, tensor_parallel=(("wide", 2),))
    gpus = [gpu("a", 80), gpu("b", 40)]
    places = Placement(config, lambda: gpus)
    wide = places.choose("wide", is_chat=True)
    assert 75 * GIB < wide.residency.budget_bytes() < 80 * GIB
    gpus.pop()
    assert wide.residency.budget_bytes() == 0, "one of them is gone"


def test_a_further_worker_elsewhere_makes_nobody_sleep() -> None:
    ledger = Ledger(lambda: 100)
    ledger.ask("b", 80)
    ledger.decide()
    ledger.rest("b")
    with pytest.raises(NoSpareMemory):
        ledger.ask("a (2)", 80, "a", is_further=True)
    assert ledger.decide().retiring == frozenset()
    ledger.ask("a (2)", 20, "a", is_further=True)
    ledger.decide()
    ledger.use("a (2)")
    ledger.rest("a (2)")  # used later than b
    ledger.ask("c", 20)
    assert ledger.decide().retiring == {"a (2)"}, "a model's further worker goes before any other"


@pytest.fixture
async def engine(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    """A machine of two GPUs, on which "computing on the processor" is what is wanted."""
    make = placement.Placement
    monkeypatch.setattr(
        "inference.engine.Placement", lambda config: make(config, lambda: [gpu("a"), gpu("b")])
    )
    monkeypatch.setattr(Supervisor, "_check_place", lambda self, info: None)
    running = _Engine(replace(engine_config(tiny_model), max_restarts_per_minute=12))
    yield running
    await running.close()


def _places(engine: Engine) -> list[tuple[str, ...]]:
    return [worker.place.gpus for worker in engine._host("tiny").workers if worker.is_awake]


async def test_each_gpu_has_a_worker_and_a_killed_one_comes_back_to_its_gpu(
    engine: Engine,
) -> None:
    engine.load("tiny")
    await _until(lambda: engine.state("tiny").num_ready == 2, timeout_s=120)
    assert sorted(_places(engine)) == [("GPU-a",), ("GPU-b",)]
    held = [place.residency._ledger.held_bytes for place in engine._placement._on_gpus]
    assert all(num_bytes > 0 for num_bytes in held)
    assert engine._placement.host.residency._ledger.held_bytes == 0
    requests = [replace(_request(f"r{n}", PROMPTS[3], **LONG), cache_salt=str(n)) for n in range(6)]
    calm = [_ids(await _run(engine, request)) for request in requests]
    answers = [asyncio.create_task(_run(engine, request)) for request in requests]
    workers = engine._host("tiny").workers
    await _until(lambda: all(worker.on_board for worker in workers))
    homes = {worker.name: worker.place.gpus for worker in workers}
    pid = workers[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for updates, expected in zip(await asyncio.gather(*answers), calm, strict=True):
        assert isinstance(updates[-1], Finished)
        assert _ids(updates) == expected
    await _until(lambda: engine.state("tiny").num_ready == 2)
    assert {worker.name: worker.place.gpus for worker in workers} == homes
    assert Counter(_places(engine)) == {("GPU-a",): 1, ("GPU-b",): 1}


async def test_what_computes_on_the_processor_gives_its_gpu_back(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus: list[GpuReading] = [gpu("a")]
    make = placement.Placement
    monkeypatch.setattr("inference.engine.Placement", lambda config: make(config, lambda: gpus))
    running = _Engine(engine_config(tiny_model))
    try:
        updates = await _run(running, _request("one", PROMPTS[1]))
        assert isinstance(updates[-1], Finished)
        worker = running._host("tiny").workers[0]
        assert worker.place is running._placement.host
        assert worker.num_restarts == 0
        (on_gpu,) = running._placement._on_gpus
        assert on_gpu.residency._ledger.held_bytes == 0
        assert running._placement.host.residency._ledger.held_bytes > 0
    finally:
        await running.close()


async def test_two_models_share_one_gpu_where_their_weights_leave_room(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_model(tmp_path / "other", seed=3, tokenizer=tiny_model)
    make = placement.Placement
    monkeypatch.setattr(
        "inference.engine.Placement", lambda config: make(config, lambda: [gpu("a")])
    )
    monkeypatch.setattr(Supervisor, "_check_place", lambda self, info: None)
    config = engine_config(tiny_model)
    entries = (*config.extra_models, f"other={other}")
    running = _Engine(replace(config, extra_models=entries, kv_bytes=None))
    try:
        for name in ("tiny", "other"):
            await _run(running, replace(_request(name, PROMPTS[1]), model=name))
        assert [running.state(name).state for name in ("tiny", "other")] == ["ready", "ready"]
        (on_gpu,) = running._placement._on_gpus
        ledger = on_gpu.residency._ledger
        assert 0 < ledger.held_bytes <= ledger.budget_bytes()
        assert ledger.held_bytes > Needs(0, GIB).size_bytes, "their caches are large"
    finally:
        await running.close()
