"""A draft model changes how many steps an answer takes, and nothing else."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import (
    Engine,
    EngineConfig,
    Finished,
    GenerateRequest,
    SamplingParams,
    Tokens,
    Update,
    assembly,
)
from inference.draft_loader import Draft
from inference.draft_model import DraftModel
from inference.engine_loop import EngineLoop
from inference.grammar import regex_grammar
from inference.loader import load_model
from inference.needs import estimate_needs
from inference.paged_kv import PagedKV
from tests.inference.conftest import engine_config
from tests.inference.loops import (
    PROMPTS,
    answers,
    ids,
    make_drafting_loop,
    make_loop,
    request,
    run,
    step,
)
from tests.inference.tiny_models import make_encoder, make_model

DRAWN = {"temperature": 1.0, "max_tokens": 120}
TOKEN_BYTES = 768  # of keys and values of the tiny model, whose context is 512 tokens
TIGHT_KV = 1024 * TOKEN_BYTES  # 768 tokens for the model, 256 for its draft model


@pytest.fixture(scope="module")
def stranger(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other random weights: it never guesses right, but by chance."""
    return make_model(
        tmp_path_factory.mktemp("models") / "stranger",
        seed=7,
        tokenizer=tiny_model,
        num_hidden_layers=1,
    )


@pytest.fixture(scope="module")
def plain(tiny_model: Path) -> EngineLoop:
    return make_loop(tiny_model, max_num_drafting=0)


@pytest.fixture(scope="module")
def twins(tiny_model: Path) -> EngineLoop:
    """With itself for a draft model."""
    return make_drafting_loop(tiny_model, tiny_model)[0]


@pytest.fixture(scope="module")
def loops(tiny_model: Path, stranger: Path, twins: EngineLoop) -> list[EngineLoop]:
    """With a draft model that is right, one that is wrong, and one with hardly any room."""
    wrong, _ = make_drafting_loop(tiny_model, stranger)
    tight, _ = make_drafting_loop(tiny_model, tiny_model, kv_bytes=TIGHT_KV)
    return [twins, wrong, tight]


def model_of(loop: EngineLoop) -> DraftModel:
    model = loop.scheduler.speculation.model
    assert isinstance(model, DraftModel)
    return model


def said(updates: list[Update]) -> tuple[object, ...]:
    """What a reader is told, but for its timing and for what was cached."""
    told = [u for u in updates if isinstance(u, Tokens)]
    end = updates[-1]
    assert isinstance(end, Finished), end
    rated = [r.token_id for u in told for r in u.logprobs]
    ending = (end.reason, end.stop, end.usage.completion_tokens)
    return "".join(u.text for u in told), ids(updates), rated, ending


def num_steps(loop: EngineLoop, *requests: GenerateRequest) -> int:
    for one in requests:
        loop.submit(one)
    count = 0
    while not loop.is_idle:
        count += len(list(loop.step())) > 0
    loop.check()
    return count


def guessed(loop: EngineLoop, act: Callable[[], Any]) -> tuple[int, int]:
    """How many tokens the draft model guesses meanwhile, and how many of them right."""
    speculation = loop.scheduler.speculation
    before = speculation.num_asked, speculation.num_right
    act()
    return speculation.num_asked - before[0], speculation.num_right - before[1]


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_same_tokens_as_without(
    plain: EngineLoop, loops: list[EngineLoop], data: st.DataObject
) -> None:
    requests = []
    for number in range(data.draw(st.integers(1, 5))):
        params = SamplingParams(
            max_tokens=data.draw(st.integers(1, 40)),
            temperature=data.draw(st.sampled_from([0.0, 0.7, 1.0])),
            seed=data.draw(st.integers(0, 99)),
            top_p=data.draw(st.sampled_from([1.0, 0.8])),
            stop=data.draw(st.sampled_from([(), ("e",), ("th", " q")])),
            frequency_penalty=data.draw(st.sampled_from([0.0, 0.0, 1.0])),
            repetition_penalty=data.draw(st.sampled_from([1.0, 1.0, 1.3])),
            logit_bias=data.draw(st.sampled_from([(), ((9, 3.0), (50, -5.0))])),
            grammar=data.draw(st.sampled_from(["", "", regex_grammar("[a-z ]{3,30}[0-9]{2}")])),
            min_tokens=data.draw(st.sampled_from([0, 1])),
            num_logprobs=data.draw(st.sampled_from([None, 0])),
        )
        prompt = tuple(data.draw(st.lists(st.integers(3, 300), min_size=1, max_size=90)))
        user = data.draw(st.sampled_from("ab"))
        requests.append(
            GenerateRequest(f"r{number}", "tiny", prompt, params, user=user, cache_salt=user)
        )
    expected = [*map(said, run(plain, *requests).values())]
    for loop in loops:
        assert [*map(said, run(loop, *requests).values())] == expected
        loop.check()
        assert model_of(loop), "no draft model has failed"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_model_that_agrees_saves_most_steps(
    plain: EngineLoop, twins: EngineLoop, temperature: float
) -> None:
    """The same noise picks the same token, at any temperature."""
    wanted = [
        request(f"r{n}", prompt, temperature=temperature, seed=n, max_tokens=150)
        for n, prompt in enumerate(PROMPTS)
    ]
    steps = num_steps(plain, *wanted)
    fewer = 0

    def act() -> None:
        nonlocal fewer
        fewer = num_steps(twins, *wanted)

    num_drafted, num_accepted = guessed(twins, act)
    assert num_drafted > 300
    assert num_accepted > 0.97 * num_drafted
    assert 2 * fewer < steps


@pytest.mark.parametrize(
    "rules",
    [
        {"frequency_penalty": 1.5, "presence_penalty": 0.5, "repetition_penalty": 1.2},
        {"grammar": regex_grammar("([a-z]{1,4} ){200}"), "top_p": 0.9},
        {"logit_bias": ((9, 5.0), (70, 4.0)), "min_tokens": 100, "ignore_eos": False},
    ],
)
def test_it_draws_by_the_rules_of_the_request(twins: EngineLoop, rules: dict[str, Any]) -> None:
    wanted = request("r", PROMPTS[2], **{**DRAWN, "seed": 5, **rules})
    num_drafted, num_accepted = guessed(twins, lambda: run(twins, wanted))
    assert num_drafted > 40
    assert num_accepted > 0.95 * num_drafted


def test_a_draft_model_that_is_wrong_is_hardly_asked(
    plain: EngineLoop, tiny_model: Path, stranger: Path
) -> None:
    loop, _ = make_drafting_loop(tiny_model, stranger)
    # At 1.0 these models are so unsure that the noise alone decides a third of all draws, and is right.
    wanted = request("r", PROMPTS[2], temperature=0.1, seed=1, max_tokens=400)
    found: list[list[int]] = []
    num_drafted, num_accepted = guessed(loop, lambda: found.extend(answers(loop, wanted)))
    assert found == answers(plain, wanted)
    assert num_accepted < 0.1 * num_drafted
    assert 5 < num_drafted < 60


def test_a_draft_model_that_is_slow_is_hardly_asked(tiny_model: Path) -> None:
    loop, _ = make_drafting_loop(tiny_model, tiny_model, draft_step_s=1.1)
    wanted = request("r", PROMPTS[1], **DRAWN, seed=2)
    num_drafted, num_accepted = guessed(loop, lambda: run(loop, wanted))
    assert 0 < num_drafted < 8
    assert num_accepted == num_drafted, "it would be right"


def test_a_long_prompt_is_read_in_pieces_while_others_are_guessed_for(
    tiny_model: Path, plain: EngineLoop
) -> None:
    loop, _ = make_drafting_loop(tiny_model, tiny_model, draft_step_s=0.2)
    model, pace = model_of(loop), model_of(loop).pace
    wanted = [
        request("short", PROMPTS[1], **DRAWN, seed=1),
        request("long", PROMPTS[3] * 3, **DRAWN, seed=2),
    ]
    told: dict[str, list[Any]] = {}
    for one in wanted:
        loop.submit(one)
    pieces = []
    num_read = 0
    while not loop.is_idle:
        step(loop, told)
        copy = model._copies.get("long")
        if copy is not None and copy.sequence.num_computed > num_read:
            pieces.append(copy.sequence.num_computed - num_read)
            num_read = copy.sequence.num_computed
    assert len([piece for piece in pieces if piece > 8]) > 3
    assert max(pieces) <= max(64, pace.chunk_tokens()) + 8
    assert [ids(told[one.request_id]) for one in wanted] == answers(plain, *wanted)


def test_nobody_is_asked_while_many_write(tiny_model: Path) -> None:
    loop, _ = make_drafting_loop(tiny_model, tiny_model, max_num_drafting=2)
    told: dict[str, list[Any]] = {}
    for n in range(3):
        loop.submit(request(f"r{n}", PROMPTS[1], temperature=1.0, seed=n, max_tokens=30))
    while not loop.is_idle:
        step(loop, told)
        if len(loop.scheduler.running) > 2:
            assert loop.scheduler.num_drafted == 0
    run(loop, request("alone", PROMPTS[1], temperature=1.0))
    assert loop.scheduler.num_drafted


def test_texts_longer_than_its_context_are_written_without_it(
    plain: EngineLoop, tiny_model: Path, tmp_path: Path
) -> None:
    short = make_model(tmp_path / "short", tokenizer=tiny_model, max_position_embeddings=64)
    loop, _ = make_drafting_loop(tiny_model, short)
    wanted = [request(f"r{n}", prompt, **DRAWN, seed=n) for n, prompt in enumerate(PROMPTS)]
    assert answers(loop, *wanted) == answers(plain, *wanted)
    loop.check()
    assert 20 < loop.scheduler.num_accepted < 240, "while they are short, it guesses"


@pytest.mark.parametrize("kv_bytes", [TIGHT_KV, 690 * TOKEN_BYTES])
def test_without_room_some_go_without(plain: EngineLoop, tiny_model: Path, kv_bytes: int) -> None:
    """A cache that is full to its last token, in either model: some are preempted, all are right."""
    loop, info = make_drafting_loop(tiny_model, tiny_model, kv_bytes=kv_bytes)
    assert not info.draft_problem
    preempted = []
    preempt = loop.scheduler._preempt
    loop.scheduler._preempt = lambda victim: (preempted.append(victim.id), preempt(victim))  # type: ignore[method-assign]
    wanted = [
        request(f"r{n}", PROMPTS[2 + n % 2], temperature=1.0, seed=n, max_tokens=250)
        for n in range(4)
    ]
    assert answers(loop, *wanted) == answers(plain, *wanted)
    assert preempted
    assert loop.scheduler.num_accepted > 30
    loop.check()


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_whatever_becomes_of_a_request_its_place_is_free_again(
    twins: EngineLoop, plain: EngineLoop, data: st.DataObject
) -> None:
    wanted = [
        request(f"r{n}", PROMPTS[n], **DRAWN, seed=data.draw(st.integers(0, 5))) for n in range(4)
    ]
    leaving = dict(enumerate(data.draw(st.lists(st.integers(1, 60), max_size=3))))
    told: dict[str, list[Any]] = {}
    for one in wanted:
        twins.submit(one)
    for number in range(1000):
        for who, when in leaving.items():
            if number == when:
                twins.abort(f"r{who}")
        if twins.is_idle:
            break
        step(twins, told)
        model_of(twins).kv.check()
        assert set(model_of(twins)._copies) <= set(twins.scheduler.running)
    twins.check()
    stayed = wanted[len(leaving) :]
    assert [ids(told[one.request_id]) for one in stayed] == answers(plain, *stayed)


def test_a_draft_model_that_fails_is_switched_off(
    plain: EngineLoop, tiny_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop, _ = make_drafting_loop(tiny_model, tiny_model)
    model: Any = model_of(loop).runner.model
    wanted = [request(f"r{n}", prompt, **DRAWN, seed=n) for n, prompt in enumerate(PROMPTS)]
    told: dict[str, list[Any]] = {}
    for one in wanted:
        loop.submit(one)
    while loop.scheduler.num_accepted < 20:
        step(loop, told)
    model.model.layers[1].mlp = None  # what a broken kernel would do: a step raises midway
    with caplog.at_level(logging.WARNING):
        while not loop.is_idle:
            step(loop, told)
    assert [record.message for record in caplog.records] == [
        "the draft model fails and is switched off"
    ]
    assert loop.scheduler.speculation.model is None
    assert [ids(told[one.request_id]) for one in wanted] == answers(plain, *wanted)
    loop.check()


def test_the_next_turn_of_a_chat_is_not_read_again(tiny_model: Path) -> None:
    loop, _ = make_drafting_loop(tiny_model, tiny_model)
    (first,) = answers(loop, request("one", PROMPTS[3], **DRAWN, seed=3))
    cached_tokens = model_of(loop).kv.cached_tokens
    assert cached_tokens > len(PROMPTS[3])
    loop.submit(request("two", (*PROMPTS[3], *first, 5, 6, 7), **DRAWN, seed=4))
    told: dict[str, list[Any]] = {}
    while not model_of(loop)._copies:
        step(loop, told)
    assert model_of(loop)._copies["two"].sequence.num_computed > len(PROMPTS[3]) + 100
    run(loop)
    loop.check()


def test_models_pad_their_vocabulary_to_different_lengths(tiny_model: Path, tmp_path: Path) -> None:
    """What the small one does not know it never guesses; a text that holds it is left to others."""
    sizes = [{"vocab_size": 700}, {}]
    for number, (large, small) in enumerate((sizes, sizes[::-1])):
        paths = [
            make_model(tmp_path / f"{number}{name}", tokenizer=tiny_model, **size)
            for name, size in (("large", large), ("small", small))
        ]
        loop, info = make_drafting_loop(*paths)
        assert info.draft_model == "small"
        rules = {**DRAWN, "seed": 1, "repetition_penalty": 1.1}
        padding = tuple((token_id, -100.0) for token_id in range(370, 700 if large else 370))
        wanted = [
            request("known", PROMPTS[1], **rules, logit_bias=padding),
            request("unknown", (5, 699 if large else 300, 6), **rules),
        ]
        without = make_loop(paths[0], max_num_drafting=0)
        assert answers(loop, *wanted) == answers(without, *wanted)
        assert loop.scheduler.speculation.model is not None
        assert loop.scheduler.speculation.num_asked
        loop.check()


def test_a_grammar_that_leaves_it_no_token_ends_its_guess_alone(
    tiny_model: Path, tmp_path: Path
) -> None:
    """It knows the letters, and the first byte of none of what has to stand behind them."""
    small = make_model(tmp_path / "small", tokenizer=tiny_model, vocab_size=120)
    loop, info = make_drafting_loop(tiny_model, small)
    assert info.draft_model == "small"
    grammar = regex_grammar("[a-z]{4}é[a-z]{4}")
    wanted = [request(f"r{n}", (5, 6, 7), **DRAWN, seed=n, grammar=grammar) for n in range(4)]
    assert answers(loop, *wanted) == answers(make_loop(tiny_model, max_num_drafting=0), *wanted)
    assert loop.scheduler.speculation.num_asked
    assert loop.scheduler.speculation.model is not None
    loop.check()


# --- what cannot guess ------------------------------------------------------------------------


def refused(tiny_model: Path, small: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Why a small model is not used; the large one answers all the same."""
    with caplog.at_level(logging.WARNING):
        loop, info = make_drafting_loop(tiny_model, small)
    assert loop.scheduler.speculation.model is None
    assert not info.draft_model
    assert info.draft_problem in caplog.messages
    assert info.draft_problem.startswith("tiny runs without its draft model small. ")
    assert len(answers(loop, request("r", PROMPTS[1]))[0]) == 20
    return info.draft_problem


def test_what_cannot_guess_is_left_out_and_named(
    tiny_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = make_model(tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "another vocabulary" in refused(tiny_model, other, caplog)
    ends = make_model(tmp_path / "ends", tokenizer=tiny_model, eos_token_id=1)
    assert "by the tokens [1] and not by [2]" in refused(tiny_model, ends, caplog)
    states = make_model(
        tmp_path / "states",
        "lfm2",
        tokenizer=tiny_model,
        layer_types=["conv", "full_attention", "conv"],
    )
    assert "It keeps a state" in refused(tiny_model, states, caplog)
    assert "of lfm2" not in refused(tiny_model, make_encoder(tmp_path / "encoder"), caplog)
    assert "config.json" in refused(tiny_model, tmp_path / "nothing", caplog)
    broken = make_model(tmp_path / "broken", tokenizer=tiny_model)
    (broken / "model.safetensors").write_bytes(b"\0" * 100)
    assert "safetensors" in refused(tiny_model, broken, caplog)


def test_a_model_with_states_takes_no_draft_model(
    tiny_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    states = make_model(
        tmp_path / "states",
        "lfm2",
        tokenizer=tiny_model,
        layer_types=["conv", "full_attention", "conv"],
    )
    assert "tiny keeps a state" in refused(states, tiny_model, caplog)


def test_a_draft_model_does_not_take_the_room_that_the_model_needs(
    tiny_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Memory for just one context."""
    _, alone = make_drafting_loop(
        tiny_model, tiny_model, kv_bytes=520 * TOKEN_BYTES, draft_models=()
    )
    loop, info = make_drafting_loop(tiny_model, tiny_model, kv_bytes=520 * TOKEN_BYTES)
    assert "The KV cache of tiny needs" in info.draft_problem
    assert info == replace(alone, draft_problem=info.draft_problem)
    assert loop.scheduler.speculation.model is None


@pytest.mark.parametrize("has_own_gpus", [False, True])
def test_for_a_model_on_a_gpu_it_is_on_the_processor_and_takes_nothing_there(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, has_own_gpus: bool
) -> None:
    """`kv_bytes` are of the GPU's memory where that is the worker's own, and of the host's else."""
    small = load_model("small", tiny_model, lambda *_: None, torch.float32)
    info = replace(small.info, name="tiny", device="cuda")
    loaded = replace(small, info=info)
    monkeypatch.setattr(assembly, "step_bytes", lambda *_, **__: 0)
    monkeypatch.setattr(assembly, "free_kv_bytes", lambda device, step: 3000 * TOKEN_BYTES)
    monkeypatch.setattr("inference.memory.available_bytes", lambda: 16 * 600 * TOKEN_BYTES)
    config = engine_config(
        tiny_model, kv_bytes=2000 * TOKEN_BYTES, has_own_gpus=has_own_gpus, max_num_drafting=4
    )
    kv, draft_model = assembly._make_caches(loaded, Draft("small", small), config)
    assert draft_model is not None
    assert isinstance(kv, PagedKV)
    alone, _ = assembly._make_caches(loaded, Draft(), config)
    assert kv.capacity_tokens == alone.capacity_tokens
    assert 2900 < alone.capacity_tokens + 1000 * has_own_gpus <= 3000
    assert draft_model.kv.capacity_tokens == (600 if has_own_gpus else 500)


def test_it_is_loaded_in_the_type_of_processors(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.dtype] = []

    def load(*args: Any) -> Draft:
        asked.append(args[-1])
        return Draft()

    def dtype_of(config: EngineConfig) -> torch.dtype:
        return torch.bfloat16 if config.device == "cpu" else torch.float32

    monkeypatch.setattr(assembly, "load_draft", load)
    monkeypatch.setattr(assembly, "dtype_of", dtype_of)
    make_drafting_loop(tiny_model, tiny_model)
    assert asked == [torch.bfloat16]


def test_switched_off_nothing_is_loaded(tiny_model: Path, tmp_path: Path) -> None:
    loop, info = make_drafting_loop(tiny_model, tmp_path / "nothing", max_num_drafting=0)
    assert (info.draft_model, info.draft_problem) == ("", "")
    assert loop.scheduler.speculation.model is None


# --- in a worker ------------------------------------------------------------------------------


async def test_a_model_runs_without_a_draft_model_that_the_budget_has_no_room_for(
    tiny_model: Path,
) -> None:
    config = engine_config(tiny_model)
    entries = (*config.extra_models, f"small={tiny_model}")
    config = replace(config, extra_models=entries, draft_models=(("tiny", "small"),))
    both = estimate_needs("tiny", tiny_model, config, 2**40)
    engine = Engine(replace(config, memory_bytes=both.size_bytes - 1))
    try:
        wanted = request("r", PROMPTS[0], max_tokens=5)
        updates = [update async for update in engine.generate(wanted)]
        assert isinstance(updates[-1], Finished), updates[-1]
        info = engine.info("tiny")
        assert info is not None
        assert info.draft_model == ""
        assert "no memory for both" in info.draft_problem
    finally:
        await engine.close()


async def test_an_answer_goes_on_with_its_draft_model_after_a_death(tiny_model: Path) -> None:
    config = engine_config(tiny_model)
    entries = (*config.extra_models, f"small={tiny_model}")
    engine = Engine(replace(config, extra_models=entries, draft_models=(("tiny", "small"),)))
    wanted = [request(f"r{n}", prompt, **DRAWN, seed=n) for n, prompt in enumerate(PROMPTS[:3])]
    pids = set()

    async def heard(one: GenerateRequest) -> list[int]:
        updates: list[Update] = []
        async for update in engine.generate(one):
            updates.append(update)
            pid = engine.worker_pid("tiny")
            if pid is not None and not pids and len(ids(updates)) > 30:
                pids.add(pid)
                os.kill(pid, signal.SIGKILL)
        assert isinstance(updates[-1], Finished), updates[-1]
        return ids(updates)

    try:
        found = await asyncio.gather(*map(heard, wanted))
        info = engine.info("tiny")
        assert info is not None
        assert info.draft_model == "small"
        assert engine.worker_pid("tiny") not in pids
    finally:
        await engine.close()
    assert pids
    assert found == answers(make_loop(tiny_model, max_num_drafting=0), *wanted)
