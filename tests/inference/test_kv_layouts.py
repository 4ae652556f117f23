"""A whole engine says the same over pages as over slabs, to the token, whatever its requests suffer."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import Finished, ModelTooLarge, Update
from inference.assembly import assemble
from inference.block_pool import BLOCK_TOKENS
from inference.engine_loop import EngineLoop
from inference.hybrid_kv import HybridKV
from inference.kv_cache import SlabKV
from inference.messages import GenerateRequest
from inference.paged_kv import PagedKV
from tests.inference.conftest import engine_config
from tests.inference.loops import PROMPTS, answers, ids, request, step
from tests.inference.tiny_models import make_model

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "full attention": ("qwen3", {}),
    "sliding window": ("mistral", {"sliding_window": 24}),
    "softcap": (
        "gemma2",
        {"sliding_window": 24, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16},
    ),
}
KV_BYTES_PER_TOKEN = 3 * 2 * 2 * 16 * 4  # layers, heads, keys and values, dim, float32
TIGHT_TOKENS = 640  # the context is 512
ROOTS = [list(PROMPTS[3]), [7, 8, 9] * 30, [5] * 16 + list(PROMPTS[2])]
examples = count()


def make_loop(path: Path, layout: str, num_tokens: int = 10_000) -> EngineLoop:
    config = replace(
        engine_config(path, step_budget_tokens=32, kv_layout=layout),
        kv_bytes=num_tokens * KV_BYTES_PER_TOKEN,
    )
    loop = assemble("tiny", path, config, lambda *_: None)[0]
    assert isinstance(loop, EngineLoop)
    return loop


def assert_all_free(loop: EngineLoop) -> None:
    loop.kv.check()
    assert loop.kv.used_tokens == 0
    assert loop.kv.cached_tokens <= loop.kv.capacity_tokens


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model_type, settings = MODELS[request.param]
    return make_model(tmp_path_factory.mktemp("layouts") / model_type, model_type, **settings)


@pytest.fixture(scope="module")
def loops(model: Path) -> tuple[EngineLoop, EngineLoop]:
    """Over slabs and over pages, both with hardly any room."""
    slabs, pages = (make_loop(model, layout, TIGHT_TOKENS) for layout in ("slabs", "paged"))
    assert isinstance(slabs.kv, SlabKV)
    assert isinstance(pages.kv, PagedKV)
    return slabs, pages


Event = tuple[int, GenerateRequest | str]
"""So many steps, and then a request comes or the one of this name is aborted."""


def play(loop: EngineLoop, events: list[Event]) -> dict[str, list[Update]]:
    told: dict[str, list[Update]] = {}
    for num_steps, event in events:
        for _ in range(num_steps):
            step(loop, told)
        if isinstance(event, str):
            loop.abort(event)
        else:
            loop.submit(event)
    while not loop.is_idle:
        step(loop, told)
    assert_all_free(loop)
    return told


@st.composite
def traffic(draw: st.DrawFn) -> list[Event]:
    example, events, names = next(examples), [], []
    for number in range(draw(st.integers(1, 7))):
        num_steps = draw(st.integers(0, 8))
        if names and draw(st.integers(0, 4)) == 0:
            events.append((num_steps, draw(st.sampled_from(names))))
            continue
        root = draw(st.sampled_from(ROOTS))
        tail = draw(st.lists(st.integers(3, 300), max_size=3)) * draw(st.integers(1, 5))
        prompt = tuple(root[: draw(st.integers(1, len(root)))] + tail)
        salt = f"{example} {draw(st.sampled_from(['alice', 'bob']))}"
        max_tokens = draw(st.sampled_from([1, 20, 60]))
        names.append(f"{example} {number}")
        events.append(
            (num_steps, request(names[-1], prompt, max_tokens=max_tokens, cache_salt=salt))
        )
    return events


@given(events=traffic())
@settings(max_examples=12, deadline=None)
def test_any_traffic_gets_the_same_answers(
    loops: tuple[EngineLoop, EngineLoop], events: list[Event]
) -> None:
    over_slabs, over_pages = (play(loop, events) for loop in loops)
    assert over_pages.keys() == over_slabs.keys()
    for name, updates in over_slabs.items():
        ends = [each[-1] for each in (updates, over_pages[name])]
        assert all(isinstance(end, Finished) for end in ends)
        ours, theirs = ids(over_pages[name]), ids(updates)
        length = min(len(ours), len(theirs))
        assert ours[:length] == theirs[:length]
        if all(end.reason != "abort" for end in ends):  # an abort may come a token earlier
            assert len(ours) == len(theirs)


def test_those_that_give_way_come_back_to_the_same_answers(
    loops: tuple[EngineLoop, EngineLoop],
) -> None:
    """Short answers teach the scheduler to expect no others, so too many are let in."""
    salt = f"preempted {next(examples)}"
    for loop in loops:
        answers(loop, *(request(f"short {n}", PROMPTS[0], max_tokens=1) for n in range(40)))
    rests = [tuple((17 * n + 7 * i) % 290 + 3 for i in range(52)) for n in range(5)]
    requests = [
        request(f"long {n}", PROMPTS[3][:48] + rest, max_tokens=200, cache_salt=salt)
        for n, rest in enumerate(rests)
    ]
    said = []
    for loop in loops:
        told: dict[str, list[Update]] = {}
        preempted: set[str] = set()
        for one in requests:
            loop.submit(one)
        while not loop.is_idle:
            step(loop, told)
            waiting = loop.scheduler.waiting.sequences
            preempted |= {s.id for s in waiting if s.num_output}
        assert preempted
        assert_all_free(loop)
        said.append([ids(told[one.request_id]) for one in requests])
    assert said[0] == said[1]
    assert all(len(answer) == 200 for answer in said[0])


def test_wrong_guesses_are_never_shared(model: Path) -> None:
    """Behind what is computed lie keys of tokens that were guessed and not drawn."""
    loop, fresh = make_loop(model, "paged"), make_loop(model, "slabs")
    prompt = tuple([7, 8, 9, 7, 8, 11] * 8)
    num_cached = 0
    for turn in range(4):
        [answer] = answers(loop, request(f"turn {turn}", prompt, max_tokens=37))
        [expected] = answers(
            fresh, request(f"turn {turn}", prompt, max_tokens=37, cache_salt=str(turn))
        )
        assert answer == expected
        prompt = (*prompt, *answer, 7, 8)
        told: dict[str, list[Update]] = {}
        loop.submit(request(f"next {turn}", prompt, max_tokens=1))
        while not loop.is_idle:
            step(loop, told)
        end = told[f"next {turn}"][-1]
        assert isinstance(end, Finished)
        num_computed = len(prompt) - 3  # but for the last token of the answer and the two behind
        assert end.usage.cached_tokens == num_computed // BLOCK_TOKENS * BLOCK_TOKENS
        num_cached += end.usage.cached_tokens
    assert loop.scheduler.num_drafted > loop.scheduler.num_accepted
    assert num_cached
    assert_all_free(loop)


def test_siblings_use_the_blocks_of_the_one_that_runs(model: Path) -> None:
    loop = make_loop(model, "paged")
    assert isinstance(loop.kv, PagedKV)
    told: dict[str, list[Update]] = {}
    for number in range(4):
        loop.submit(request(str(number), PROMPTS[3], max_tokens=100))
    while not all(ids(told.get(str(n), [])) for n in range(4)):
        step(loop, told)
    tables = [loop.kv.blocks(str(n))[: len(PROMPTS[3]) // BLOCK_TOKENS] for n in range(4)]
    assert len({tuple(table) for table in tables}) == 1, "one copy for all"
    for number in range(4):
        loop.abort(str(number))
    assert_all_free(loop)


def test_pages_stay_within_the_memory(model: Path) -> None:
    loop = make_loop(model, "paged", TIGHT_TOKENS)
    assert isinstance(loop.kv, PagedKV)
    answers(loop, request("one", PROMPTS[1], max_tokens=2))
    num_bytes = sum(t.nbytes for pair in loop.kv.layers.values() for t in pair)
    assert num_bytes == TIGHT_TOKENS * KV_BYTES_PER_TOKEN, "the null block among them"
    assert loop.kv.capacity_tokens == TIGHT_TOKENS - BLOCK_TOKENS
    with pytest.raises(ModelTooLarge, match="KV cache"):
        make_loop(model, "paged", 512 + BLOCK_TOKENS - 1)


def test_auto_is_slabs_here(tiny_model: Path) -> None:
    assert isinstance(make_loop(tiny_model, "auto").kv, SlabKV)


def test_models_with_states_stay_with_slabs_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = make_model(tmp_path / "lfm2", "lfm2", layer_types=["conv", "full_attention", "conv"])
    loop = make_loop(path, "paged")
    assert isinstance(loop.kv, HybridKV)
    assert "keeps states" in caplog.text
    assert answers(loop, request("one", PROMPTS[2])) == answers(
        make_loop(path, "slabs"), request("one", PROMPTS[2])
    )
