"""Requests that come together and begin alike: what they have in common is computed once."""

from pathlib import Path

import pytest

from inference import Finished, Update
from inference.block_pool import BLOCK_TOKENS
from inference.engine_loop import EngineLoop
from inference.messages import GenerateRequest
from inference.paged_kv import PagedKV
from tests.inference.loops import PROMPTS, ids, make_loop, request, run, step

LONG = tuple(i * i % 311 + 3 for i in range(300))


@pytest.fixture(params=["slabs", "paged"])
def loop(request: pytest.FixtureRequest, tiny_model: Path) -> EngineLoop:
    """Its steps have 32 tokens, so that prompts take several."""
    return make_loop(tiny_model, kv_layout=request.param)


def num_cached(updates: list[Update]) -> int:
    end = updates[-1]
    assert isinstance(end, Finished)
    return end.usage.cached_tokens


def shareable(loop: EngineLoop, num_tokens: int) -> int:
    """Slabs share tokens, pages full blocks."""
    granule = BLOCK_TOKENS if isinstance(loop.kv, PagedKV) else 1
    return num_tokens // granule * granule


def alone(loop: EngineLoop, requests: list[GenerateRequest]) -> list[list[int]]:
    return [ids(run(loop, one)[one.request_id]) for one in requests]


def test_a_prompt_of_several_steps_is_read_once_for_all(loop: EngineLoop, tiny_model: Path) -> None:
    requests = [request(str(n), LONG, temperature=1.0, seed=n) for n in range(4)]
    told = run(loop, *requests)
    cached = sorted(num_cached(updates) for updates in told.values())
    assert cached == [0, *[shareable(loop, len(LONG) - 1)] * 3]
    assert [ids(updates) for updates in told.values()] == alone(make_loop(tiny_model), requests)


def test_who_shares_a_beginning_waits_for_no_more_than_that(
    loop: EngineLoop, tiny_model: Path
) -> None:
    long, short = request("long", LONG), request("short", (*LONG[:100], 5, 6, 7))
    told: dict[str, list[Update]] = {}
    for one in (long, short):
        loop.submit(one)
    while not told.get("short") or not ids(told["short"]):
        step(loop, told)
    assert not ids(told.get("long", [])), "the rest of the long one is not read yet"
    while not loop.is_idle:
        step(loop, told)
    assert num_cached(told["short"]) == shareable(loop, 100)
    assert [ids(told["long"]), ids(told["short"])] == alone(make_loop(tiny_model), [long, short])


def test_nobody_waits_for_a_strangers_prompt(loop: EngineLoop) -> None:
    for name in ("alice", "bob"):
        loop.submit(request(name, PROMPTS[3], cache_salt=name))
    told: dict[str, list[Update]] = {}
    for _ in range(2):
        step(loop, told)
    assert len(loop.scheduler.running) == 2
    for name in ("alice", "bob"):
        loop.abort(name)
