"""Whatever comes and goes: each request is told what it is told alone, and no room is lost."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from inference import block_pool, layered_chunk, layered_plan, paged_kv
from inference.grammar import json_schema_grammar, regex_grammar
from inference.messages import GenerateRequest, SamplingParams
from tests.inference.tiny_models import make_model
from tests.inference.traffic import Clock, LoopMaker, Traffic

CONTEXT_TOKENS = 160
CAPACITY_TOKENS = 224  # of three that run, two at most can become long
ROOTS = ((3, 4, 5, 6) * 30, tuple((7 * i) % 300 + 3 for i in range(120)))
GRAMMARS = (
    "",
    regex_grammar("([a-z]{1,4} ){9}"),
    json_schema_grammar({"type": "array", "items": {"enum": ["é", "世界", 7]}, "minItems": 2}),
)
STATES = {"layer_types": ["conv", "full_attention"]}  # in slots
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "slabs": ("qwen3", {}),
    "layers": ("qwen3", {"num_hidden_layers": 5}),  # some of them in each step
    "pages": ("qwen3", {}),
    "states": ("lfm2", STATES),
}
PAGE_TOKENS = 4  # so that pages end in the middle of all that is short


@pytest.fixture(scope="module", params=LAYOUTS)
def maker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoopMaker]:
    model_type, settings = LAYOUTS[request.param]
    path = tmp_path_factory.mktemp("traffic") / model_type
    small = {"num_hidden_layers": 2, "max_position_embeddings": CONTEXT_TOKENS}
    make_model(path, model_type, **{**small, **settings})
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "layers":
            patch.setattr(layered_plan, "_BEHIND_TOKENS", 4)
            patch.setattr(layered_chunk, "LEAST_TOKENS", 8)
        for module in (block_pool, paged_kv):
            patch.setattr(module, "BLOCK_TOKENS", PAGE_TOKENS)
        yield LoopMaker.load(path, is_paged=request.param == "pages")


tokens = st.integers(3, 300)
sampling = st.builds(
    SamplingParams,
    max_tokens=st.one_of(st.integers(1, 30), st.integers(60, 10**9)),
    seed=st.integers(0, 3),
    temperature=st.sampled_from((0.0, 0.0, 0.8)),
    stop=st.sampled_from(((), (), ("e",), ("th", " q", "é"))),
    ignore_eos=st.booleans(),
    frequency_penalty=st.sampled_from((0.0, 0.0, 1.0)),
    logit_bias=st.sampled_from(((), (), ((9, 4.0), (10, 4.0)))),
    grammar=st.sampled_from(GRAMMARS),
    num_logprobs=st.just(0),  # they tell of a wrong key long before a token does
    num_prompt_logprobs=st.sampled_from((None, None, None, 0)),
)
prompts = st.builds(
    lambda root, length, tail: (*root[:length], *tail),
    st.sampled_from(ROOTS),
    st.integers(1, 100),
    st.lists(tokens, max_size=8).map(tuple),
)
owners = st.fixed_dictionaries(
    {
        "user": st.sampled_from(("alice", "bob", "charlie")),
        "weight": st.sampled_from((1.0, 2.0)),
        "cache_salt": st.sampled_from(("", "", "secret")),
        "priority": st.sampled_from(("interactive", "interactive", "api", "background")),
    }
)


asked = st.tuples(prompts, sampling, owners)


def request(prompt: tuple[int, ...], params: SamplingParams, **of: Any) -> GenerateRequest:
    return GenerateRequest("", "tiny", prompt, params, **of)


def play(traffic: Traffic, data: st.DataObject) -> None:
    """Some requests, and then anything, up to the end of all."""
    for prompt, params, of in data.draw(st.lists(asked, min_size=2, max_size=5)):
        traffic.ask(request(prompt, params, **of))
    for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=6, max_size=12)):
        action(traffic, data)
        for _ in range(data.draw(st.integers(0, 12))):
            traffic.step()
    traffic.run_to_the_end()
    for _ in range(3):  # calmly, which is when there are drafts, over all that is cached now
        for action in data.draw(st.lists(st.sampled_from((go_on, fork)), min_size=1, max_size=2)):
            action(traffic, data)
        traffic.run_to_the_end()


def ask(traffic: Traffic, data: st.DataObject) -> None:
    prompt, params, of = data.draw(asked)
    traffic.ask(request(prompt, params, **of))


def fork(traffic: Traffic, data: st.DataObject) -> None:
    """More answers to one prompt, as when somebody asks for several, or for another try."""
    before = traffic.asked[someone(traffic, data)]
    for params in data.draw(st.lists(sampling, min_size=1, max_size=3)):
        traffic.ask(request(before.prompt_ids, params, **heirs_of(before, data)))


def go_on(traffic: Traffic, data: st.DataObject) -> None:
    """The next turn of a chat, also of one whose answer is still being written."""
    name = someone(traffic, data)
    tail = data.draw(st.lists(tokens, max_size=5))
    before = traffic.asked[name]
    prompt = (*before.prompt_ids, *traffic.output_of(name), *tail)[: CONTEXT_TOKENS - 1]
    traffic.ask(request(prompt, data.draw(sampling), **heirs_of(before, data)))


def take_up(traffic: Traffic, data: st.DataObject) -> None:
    """An answer goes on behind any of its tokens, as after a worker's death."""
    name = someone(traffic, data)
    before, output = traffic.asked[name], traffic.output_of(name)
    kept = output[: data.draw(st.integers(0, len(output)))]
    of = heirs_of(before, data)
    again = request(before.prompt_ids, before.params, output_ids=kept, **of)
    traffic.ask(replace(again, is_replay=True))


def abort(traffic: Traffic, data: st.DataObject) -> None:
    """In the middle of it."""
    if running := list(traffic.loop.scheduler.running):
        traffic.abort(data.draw(st.sampled_from(running)))


def abort_any(traffic: Traffic, data: st.DataObject) -> None:
    """It runs, waits, or has ended long ago."""
    traffic.abort(someone(traffic, data))


ACTIONS = (ask, ask, fork, go_on, take_up, abort, abort_any)


def heirs_of(before: GenerateRequest, data: st.DataObject) -> dict[str, Any]:
    """Whoever asks, what the one before has computed is mostly theirs to use."""
    salt = data.draw(st.sampled_from((before.cache_salt, before.cache_salt, "of their own")))
    return {**data.draw(owners), "cache_salt": salt}


def someone(traffic: Traffic, data: st.DataObject) -> str:
    """Anybody, or one of the last that have ended: what those computed is mostly still there."""
    return data.draw(st.sampled_from((traffic.ended[-2:] * 8) + list(traffic.asked)))


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_everybody_is_told_what_they_are_told_alone(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    clock = Clock(data.draw(st.integers(0, 999)))
    monkeypatch.setattr("inference.engine_loop.monotonic", clock)
    traffic = Traffic(
        maker,
        capacity_tokens=CAPACITY_TOKENS,
        max_waiting_tokens=data.draw(st.sampled_from((900, 100_000))),
    )
    traffic.expect_answers_of(data.draw(st.sampled_from((8.0, 256.0))))
    play(traffic, data)
    traffic.check_answers()
    traffic.check_books()
    for what, number in traffic.seen.items():
        event(f"{what}: {min(number, 3)}")


def test_such_traffic_is_dense(maker: LoopMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever there is happens in it: sequences are preempted, refused, aborted, go on behind what
    is cached, and are guessed ahead."""
    monkeypatch.setattr("inference.engine_loop.monotonic", Clock(0))
    traffic = Traffic(maker, capacity_tokens=CAPACITY_TOKENS, max_waiting_tokens=900)
    traffic.expect_answers_of(8.0)
    repeated = SamplingParams(
        max_tokens=10**9, temperature=0.0, logit_bias=((9, 100.0),), num_logprobs=0
    )
    for number in range(5):
        prompt = ROOTS[number % 2][:40]
        traffic.ask(request(prompt, replace(repeated, seed=number), user=str(number)))
    for _ in range(12):
        traffic.step()
    traffic.abort(next(iter(traffic.loop.scheduler.running)))
    traffic.run_to_the_end()
    for _ in range(16):
        traffic.ask(request(ROOTS[0][:70], replace(repeated, max_tokens=6)))
    traffic.run_to_the_end()
    traffic.check_answers()
    traffic.check_books()
    kinds = {"preempted", "refused", "aborted", "cached"}
    if traffic.loop.scheduler.max_num_drafting:
        kinds.add("accepted")
    del traffic.seen["layered"]  # it takes a slower clock: see test_layered_prefill
    assert {what for what, number in traffic.seen.items() if number} == kinds
