"""What the engine tells about its own work: shares of its time, and what is in its cache."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import EngineConfig
from inference.assembly import assemble
from inference.engine import Engine
from inference.engine_loop import EngineLoop
from inference.messages import (
    Cached,
    Finished,
    Prefill,
    Probe,
    PromptLogprobs,
    Update,
    kv_salt,
)
from tests.inference.conftest import engine_config
from tests.inference.loops import PROMPTS, ids, request, run
from tests.inference.tiny_models import make_model

numbers = count()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("glass") / "tiny")


@pytest.fixture(scope="module", params=("slabs", "pages"))
def loop(request: pytest.FixtureRequest, path: Path) -> EngineLoop:
    config = engine_config(path, step_budget_tokens=32, kv_layout=request.param)
    loop = assemble("tiny", path, config, lambda *_: None)[0]
    assert isinstance(loop, EngineLoop)
    return loop


def end_of(updates: list[Update]) -> Finished:
    assert isinstance(updates[-1], Finished), updates[-1]
    return updates[-1]


def probe(loop: EngineLoop, *prompts: tuple[int, ...], salt: str = "") -> tuple[int, ...]:
    loop.probe(Probe("probe", prompts, kv_salt("", salt)))
    (frame,) = loop.step()
    ((_, answer),) = frame.updates
    assert isinstance(answer, Cached)
    return answer.num_tokens


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(PROMPTS), st.integers(1, 12)), min_size=1, max_size=5))
def test_shares_of_a_steps_time_add_up_to_no_more_than_the_steps(
    loop: EngineLoop, asked: list[tuple[tuple[int, ...], int]]
) -> None:
    for prompt, num in asked:
        loop.submit(request(f"{next(numbers)}", prompt, max_tokens=num))
    steps_ms, ends = 0.0, []
    while not loop.is_idle:
        for frame in loop.step():
            steps_ms += frame.stats.step_ms
            ends += [u for _, u in frame.updates if isinstance(u, Finished)]
    shares_ms = [end.timings.engine_ms for end in ends]
    assert len(ends) == len(asked)
    assert min(shares_ms) > 0
    assert sum(shares_ms) <= steps_ms * 1.001


def test_who_has_more_tokens_in_the_same_steps_has_more_of_their_time(loop: EngineLoop) -> None:
    short, long = (tuple(range(3, 7)), tuple(range(50, 74)))  # both in one step of 32
    told = run(loop, request("short", short, max_tokens=1), request("long", long, max_tokens=1))
    ratio = (
        end_of(told["long"]).timings.engine_ms / end_of(told["short"]).timings.engine_ms
    )  # 24 tokens to 4, but for the one that is read alone in the first step
    assert ratio > 1.5


def test_a_stopped_request_has_what_it_cost_until_then(loop: EngineLoop) -> None:
    loop.submit(request("stopped", PROMPTS[2], max_tokens=100))
    for _ in range(6):
        list(loop.step())
    loop.abort("stopped")
    (frame,) = loop.step()
    end = frame.updates[-1][1]
    assert isinstance(end, Finished)
    assert end.reason == "abort"
    assert end.timings.engine_ms > 0


def test_reading_tells_for_how_long_it_has_read(loop: EngineLoop) -> None:
    told = run(loop, request(f"{next(numbers)}", tuple(range(9, 130)), cache_salt="fresh"))
    (updates,) = told.values()
    progress = [u for u in updates if isinstance(u, Prefill)]
    elapsed = [u.elapsed_ms for u in progress]
    assert elapsed == sorted(elapsed)
    assert elapsed[-1] <= end_of(updates).timings.prefill_ms * 1.001


@settings(max_examples=30)
@given(st.integers(1, 130), st.integers(0, 60), st.sampled_from(["", "alice"]))
def test_a_probe_tells_what_the_next_request_finds(
    loop: EngineLoop, length: int, num_other: int, salt: str
) -> None:
    prompt = (*PROMPTS[3][:length], *((next(numbers) * 7 + i) % 290 + 3 for i in range(num_other)))
    (found,) = probe(loop, prompt, salt=salt)
    assert probe(loop, prompt, salt="somebody else") == (0,)
    assert probe(loop, prompt, salt=salt) == (found,)  # looking changes nothing
    told = run(loop, request("next", prompt, max_tokens=2, cache_salt=salt))
    cached = end_of(told["next"]).usage.cached_tokens
    assert cached <= found <= cached + 16  # at least one token is computed, of pages a whole block


def test_rating_an_answer_takes_its_prompt_from_the_cache(loop: EngineLoop) -> None:
    prompt = tuple(range(100, 164))
    (answer,) = run(loop, request("first", prompt, max_tokens=10)).values()
    whole = (*prompt, *ids(answer))

    def rated(**more: int) -> tuple[PromptLogprobs, Finished]:
        asked = request("rating", whole, max_tokens=1, num_prompt_logprobs=3)
        updates = run(loop, replace(asked, **more))["rating"]
        told = [u for u in updates if isinstance(u, PromptLogprobs)]
        entries = tuple(entry for one in told for entry in one.logprobs)
        return PromptLogprobs(told[0].start, entries), end_of(updates)

    everything, unhelped = rated()
    behind, helped = rated(num_prompt_rated=len(prompt))
    assert unhelped.usage.cached_tokens == 0
    assert helped.usage.cached_tokens >= len(prompt) - 16
    assert behind.start == len(prompt)
    assert len(behind.logprobs) == 10
    for one, other in zip(everything.logprobs[-10:], behind.logprobs, strict=True):
        assert one.token_id == other.token_id
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


async def test_the_pool_tells_what_is_cached_and_wakes_nobody(path: Path) -> None:
    config: EngineConfig = engine_config(path)
    engine = Engine(config)
    prompt = tuple(range(40, 100))
    try:
        assert await engine.count_cached("tiny", [prompt], cache_salt="") == (0,)
        assert engine.state("tiny").state == "cold"
        async for _ in engine.generate(request("a", prompt, max_tokens=2)):
            pass
        counted = await engine.count_cached("tiny", [prompt, (5, 6, 7)], cache_salt="")
        assert counted is not None
        assert counted[0] >= 48
        assert counted[1] == 0
        assert await engine.count_cached("tiny", [prompt], cache_salt="other") == (0,)
    finally:
        await engine.close()
