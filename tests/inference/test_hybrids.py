"""Models with states: the same answers as transformers', one by one and in batches, through any fate."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM

from inference.assembly import assemble
from inference.engine_loop import EngineLoop
from inference.hybrid_kv import HybridKV
from inference.messages import Finished, PromptLogprobs, Update
from inference.model_runner import StepResult
from inference.sequence import Sequence
from tests.inference.cache_stories import Story, play
from tests.inference.conftest import engine_config
from tests.inference.loops import PROMPTS, answers, ids, make_loop, request, run, step
from tests.inference.tiny_models import make_model

# A convolution state, a recurrent state, both beside attention in the same layer, and experts.
LINEAR: dict[str, Any] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}
MODELS: dict[str, dict[str, Any]] = {
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3},
    "qwen3_5_text": {
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        **LINEAR,
    },
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
        **LINEAR,
    },
    "falcon_h1": {
        "mamba_d_ssm": 128,
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "mamba_d_state": 16,
        "mamba_chunk_size": 16,
    },
    "mamba2": {
        "num_heads": 8,
        "state_size": 16,
        "n_groups": 2,
        "chunk_size": 16,
        "num_key_value_heads": None,
    },
}


ATTENDING = sorted({*MODELS} - {"mamba2"})  # without any attention there is no slab to keep


@pytest.fixture(scope="module", params=MODELS)
def hybrid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrids") / request.param
    return make_model(path, request.param, **MODELS[request.param])


@pytest.fixture
def loop(hybrid: Path) -> Iterator[EngineLoop]:
    """A loop of small steps that is idle at the end, with every slot free."""
    found = make_loop(hybrid)
    yield found
    found.kv.check()
    assert found.kv.used_tokens == 0
    assert slots_of(found) == set()


def slots_of(loop: EngineLoop) -> set[str]:
    assert isinstance(loop.kv, HybridKV)
    return loop.kv.states.holders


def test_answers_equal_transformers_generate(loop: EngineLoop, hybrid: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(hybrid, dtype=torch.float32)
    expected = [
        model.generate(
            torch.tensor([prompt]), max_new_tokens=20, min_new_tokens=20, do_sample=False,
            eos_token_id=None, pad_token_id=0,
        )[0, len(prompt) :].tolist()
        for prompt in PROMPTS
    ]  # fmt: skip
    alone = [answers(loop, request(f"a{i}", p))[0] for i, p in enumerate(PROMPTS)]
    together = answers(loop, *(request(f"t{i}", p) for i, p in enumerate(PROMPTS)))
    assert alone == expected
    assert together == expected
    assert len({tuple(answer) for answer in expected}) == len(expected), "each prompt counts"


def test_prompts_are_rated_over_chunks_and_neighbours(loop: EngineLoop, hybrid: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(hybrid, dtype=torch.float32)
    requests = [request(str(i), p, num_prompt_logprobs=0) for i, p in enumerate(PROMPTS)]
    told = run(loop, *requests)
    for prompt, updates in zip(PROMPTS, told.values(), strict=True):
        found = [r.logprob for u in updates if isinstance(u, PromptLogprobs) for r in u.logprobs]
        with torch.inference_mode():
            plain = (
                model(input_ids=torch.tensor([prompt]), use_cache=False).logits[0].log_softmax(-1)
            )
        expected = [float(plain[i, token]) for i, token in enumerate(prompt[1:])]
        assert found == pytest.approx(expected, abs=1e-4)


def test_a_resumed_answer_goes_on_as_if_nothing_had_been(loop: EngineLoop) -> None:
    [whole] = answers(loop, request("whole", PROMPTS[2]))
    for cut in (1, 7, 19):
        [rest] = answers(loop, request(f"r{cut}", PROMPTS[2], output_ids=tuple(whole[:cut])))
        assert whole[:cut] + rest == whole


def test_an_abort_frees_the_slot_at_once(loop: EngineLoop) -> None:
    for one in (request("stays", PROMPTS[1]), request("goes", PROMPTS[3])):
        loop.submit(one)
    for _ in range(3):
        list(loop.step())
    assert slots_of(loop) == {"stays", "goes"}
    loop.abort("goes")
    assert slots_of(loop) == {"stays"}
    told = run(loop)
    assert {name for name, updates in told.items() if isinstance(updates[-1], Finished)} == {
        "stays",
        "goes",
    }


def test_one_that_gives_way_is_computed_again(hybrid: Path) -> None:
    loop = make_loop(hybrid, max_num_sequences=2)
    requests = [request(str(i), p) for i, p in enumerate(PROMPTS[1:])]
    expected = answers(loop, *requests)
    low, other, high = (
        replace(one, priority=priority)
        for one, priority in zip(requests, ("background", "api", "interactive"), strict=True)
    )
    told: dict[str, list[Update]] = {}
    for one in (low, other):
        loop.submit(one)
    while len(ids(told.get(low.request_id, []))) < 5:
        step(loop, told)
    loop.submit(high)
    step(loop, told)
    assert slots_of(loop) == {other.request_id, high.request_id}, "the lowest has given way"
    while not loop.is_idle:
        step(loop, told)
    assert [ids(told[one.request_id]) for one in requests] == expected


def test_no_more_run_than_there_are_slots(hybrid: Path) -> None:
    loop = make_loop(hybrid, max_num_sequences=2)
    requests = [request(str(i), PROMPTS[2][i:], max_tokens=5) for i in range(5)]
    for one in requests:
        loop.submit(one)
    most = 0
    while not loop.is_idle:
        list(loop.step())
        most = max(most, len(slots_of(loop)))
    assert most == 2


def test_failed_steps_change_no_answer(loop: EngineLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step dies at first, in the last layer of its last pass, and is run again all over."""
    requests = [request(str(i), p) for i, p in enumerate(PROMPTS)]
    expected = answers(loop, *requests)
    run_plan, num_healthy, num_passes, num_deaths = loop.runner.run, 0, 0, 0

    def run_badly(plan: list[tuple[Sequence, int]]) -> StepResult:
        nonlocal num_healthy, num_passes
        chunks = [s for s, n in plan if n > 1 or not s.num_computed]
        num_passes = 0 if num_healthy else len(chunks) + (len(chunks) < len(plan))
        num_healthy = num_healthy - 1 if num_healthy else len(plan)
        return run_plan(plan)

    def die(*_: Any) -> None:
        nonlocal num_passes, num_deaths
        num_passes -= 1
        if num_passes == 0:
            num_deaths += 1
            raise RuntimeError("a layer died")

    layers = next(m for m in loop.runner.model.modules() if isinstance(m, torch.nn.ModuleList))
    handle = layers[-1].register_forward_hook(die)
    monkeypatch.setattr(loop.runner, "run", run_badly)
    assert answers(loop, *requests) == expected
    assert [answers(loop, one)[0] for one in requests] == expected
    handle.remove()
    assert num_deaths > 20


def test_a_request_that_fails_by_itself_costs_nobody_else(loop: EngineLoop) -> None:
    poison = 299
    requests = [request(str(i), p) for i, p in enumerate(PROMPTS)]
    expected = answers(loop, *requests)

    def refuse(_: Any, args: Any, kwargs: Any) -> None:
        if (kwargs["input_ids"] == poison).all(-1).any():
            raise RuntimeError("poison")

    handle = loop.runner.model.register_forward_pre_hook(refuse, with_kwargs=True)
    told = run(loop, *requests, request("bad", (poison,)))
    handle.remove()
    assert not isinstance(told.pop("bad")[-1], Finished)
    assert [ids(updates) for updates in told.values()] == expected


@pytest.mark.parametrize("hybrid", ATTENDING, indirect=True)
def test_the_next_turn_goes_on_behind_the_last_one(hybrid: Path) -> None:
    loop, fresh = make_loop(hybrid), make_loop(hybrid)
    prompt = PROMPTS[3]
    for turn in range(3):
        [answer] = answers(loop, request(f"turn{turn}", prompt))
        assert answer == answers(fresh, request(f"turn{turn}", prompt, cache_salt=str(turn)))[0]
        prompt = (*prompt, *answer, 5, 6, 7)
        told = run(loop, request(f"next{turn}", prompt, max_tokens=1))[f"next{turn}"]
        assert isinstance(told[-1], Finished)
        assert told[-1].usage.cached_tokens >= len(prompt) - 5
        # Another user's prompt is the same, and none of this is there for them.
        told = run(loop, request(f"other{turn}", prompt, max_tokens=1, cache_salt=f"o{turn}"))[
            f"other{turn}"
        ]
        assert isinstance(told[-1], Finished)
        assert told[-1].usage.cached_tokens == 0


@pytest.mark.parametrize("hybrid", ATTENDING, indirect=True)
def test_another_end_goes_on_behind_the_last_chunk(hybrid: Path) -> None:
    """What a template leaves out of its history, or a second try, comes behind a part of a prompt."""
    loop, fresh = make_loop(hybrid), make_loop(hybrid)
    answers(loop, request("first", PROMPTS[3]))
    for number, prompt in enumerate((PROMPTS[3], (*PROMPTS[3][:-2], 9, 9, 9))):
        told = run(loop, request(f"again{number}", prompt))[f"again{number}"]
        assert isinstance(told[-1], Finished)
        assert told[-1].usage.cached_tokens == 128, "the last whole chunk of 32"
        assert [ids(told)] == answers(
            fresh, request(f"fresh{number}", prompt, cache_salt=str(number))
        )


def test_bfloat16_runs_as_well(hybrid: Path) -> None:
    config = replace(engine_config(hybrid), dtype="bfloat16")
    loop, _ = assemble("tiny", hybrid, config, lambda *_: None)
    assert all(
        len(a) == 20 for a in answers(loop, *(request(str(i), p) for i, p in enumerate(PROMPTS)))
    )


def _value(token_ids: list[int]) -> Tensor:
    """What depends on every token up to the last, as a model's state does: (1,)."""
    return torch.tensor([reduce(lambda h, t: (h * 31 + t) % 9973, token_ids, 1)])


KEY = ("recurrent", 0, 0)


class _Story(Story):
    """With a state that is computed in chunks and leaves snapshots."""

    def __init__(self, capacity_tokens: int) -> None:
        self.hybrid_kv = HybridKV(capacity_tokens, max_context_tokens=256, num_slots=3)
        super().__init__(self.hybrid_kv)

    def compute(self, name: str, token_ids: list[int], num_cached: int, chunk: int) -> None:
        states = self.hybrid_kv.states
        if num_cached:
            assert torch.equal(states.of(name)[KEY], _value(token_ids[:num_cached]))
        keys = torch.tensor(token_ids).view(1, -1, 1)
        for start in range(num_cached, len(token_ids), chunk):
            end = min(start + chunk, len(token_ids))
            found, _ = self.kv.extend(0, name, start, keys[:, start:end], keys[:, start:end])
            assert torch.equal(found, keys[:, :end]), "also what came from the cache"
            states.put(name, {KEY: _value(token_ids[:end])})
            if end < len(token_ids):
                self.hybrid_kv.keep(name, end)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_states_that_are_used_again_are_those_of_the_same_tokens(data: st.DataObject) -> None:
    story = _Story(capacity_tokens=data.draw(st.sampled_from((256, 640, 4096))))
    play(story, data)
    assert story.hybrid_kv.states.holders == set()


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(1, 200), st.booleans()), max_size=30
    )
)
@settings(max_examples=60, deadline=None)
def test_who_has_room_has_a_slot_for_any_history(steps: list[tuple[str, int, bool]]) -> None:
    kv = HybridKV(capacity_tokens=512, max_context_tokens=256, num_slots=2)
    for name, num_tokens, release in steps:
        before = kv.used_tokens, kv.states.holders
        if release:
            kv.release(name, [1] * num_tokens)
        elif not kv.reserve(name, num_tokens):
            assert (kv.used_tokens, kv.states.holders) == before
        kv.check()
    for name in "abcd":
        kv.release(name)
    assert kv.states.holders == set()
