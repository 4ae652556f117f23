"""The engine with a real worker process: parity, batching, stop, abort, death, bad requests."""

import asyncio
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from inference import (
    BUILTIN,
    BUILTIN_EMBEDDING,
    Engine,
    EngineConfig,
    Failed,
    Finished,
    GenerateRequest,
    Loading,
    Prefill,
    PromptLogprobs,
    Queued,
    SamplingParams,
    TokenLogprob,
    Tokens,
    UnknownModel,
    Update,
    flights,
    regex_grammar,
)
from tests.inference.conftest import engine_config

PROMPTS = [
    tuple((7 * i + j * 13) % 300 + 3 for j in range(n)) for i, n in enumerate((1, 9, 40, 130))
]


def _request(name: str, prompt: tuple[int, ...], **params: object) -> GenerateRequest:
    settings: dict[str, object] = {"max_tokens": 24, "temperature": 0.0, **params}
    return GenerateRequest(name, "tiny", prompt, SamplingParams(**settings))  # type: ignore[arg-type]


async def _run(engine: Engine, request: GenerateRequest) -> list[Update]:
    return [update async for update in engine.generate(request)]


def _ids(updates: list[Update]) -> list[int]:
    return [i for u in updates if isinstance(u, Tokens) for i in u.ids]


def _text(updates: list[Update]) -> str:
    return "".join(u.text for u in updates if isinstance(u, Tokens))


def _end(updates: list[Update]) -> Finished:
    assert isinstance(updates[-1], Finished), updates[-1]
    return updates[-1]


async def test_greedy_answers_equal_transformers_generate(engine: Engine, tiny_model: Path) -> None:
    """Alone and in one batch, over chunked prefill, the tokens are transformers' own."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    expected = []
    for prompt in PROMPTS:
        ids = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=2,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        expected.append(ids[: ids.index(2)] if 2 in ids else ids)
    alone = [_ids(await _run(engine, _request(f"a{i}", p))) for i, p in enumerate(PROMPTS)]
    together = await asyncio.gather(
        *(_run(engine, _request(f"t{i}", p)) for i, p in enumerate(PROMPTS))
    )
    assert alone == expected
    assert [_ids(updates) for updates in together] == expected


async def test_updates_tell_the_story_in_order(engine: Engine) -> None:
    updates = await _run(engine, _request("r", PROMPTS[3], ignore_eos=True))
    kinds = [type(u) for u in updates]
    assert kinds == sorted(
        kinds,
        key=[Loading, Queued, Prefill, Tokens, Finished].index,  # type: ignore[arg-type]
    )
    done = [u.num_done for u in updates if isinstance(u, Prefill)]
    assert done == sorted(done)
    assert done[-1] == len(PROMPTS[3])
    end = _end(updates)
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (130, 24)
    assert end.timings.ttft_ms >= end.timings.prefill_ms > 0
    assert [u.num_output for u in updates if isinstance(u, Tokens)][-1] == 24


async def test_a_seed_draws_the_same_beside_any_neighbours(engine: Engine) -> None:
    params = {"temperature": 1.0, "seed": 42, "max_tokens": 40}
    alone = await _run(engine, _request("alone", PROMPTS[1], **params))
    crowd = [
        _run(engine, _request(f"n{i}", PROMPTS[i % 4], temperature=0.7, seed=i)) for i in range(6)
    ]
    beside, *_ = await asyncio.gather(_run(engine, _request("b", PROMPTS[1], **params)), *crowd)
    assert _ids(alone) == _ids(beside)
    other = await _run(engine, _request("o", PROMPTS[1], **{**params, "seed": 43}))
    assert _ids(alone) != _ids(other)


async def test_a_stop_string_ends_the_text_in_front_of_it(engine: Engine) -> None:
    params = {"temperature": 1.0, "seed": 3, "max_tokens": 60, "ignore_eos": True}
    whole = _text(await _run(engine, _request("whole", PROMPTS[2], **params)))
    middle = len(whole) // 2
    stop = whole[middle : middle + 3]
    updates = await _run(engine, _request("cut", PROMPTS[2], stop=(stop,), **params))
    assert _text(updates) == whole[: whole.index(stop)]
    assert (_end(updates).reason, _end(updates).stop) == ("stop", stop)


async def test_a_model_pulled_meanwhile_is_there(tiny_model: Path, tmp_path: Path) -> None:
    engine = Engine(replace(engine_config(tiny_model), models_dir=tmp_path))
    before = [state.spec.name for state in engine.models()]
    shutil.copytree(tiny_model, tmp_path / "org" / "late")
    assert [state.spec.name for state in engine.models()] == [*before, "org/late"]
    await engine.close()


async def test_a_pulled_model_that_is_deleted_goes_once_its_answers_are_written(
    tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "org" / "late"
    shutil.copytree(tiny_model, path)
    config = replace(engine_config(tiny_model), models_dir=tmp_path, default_model="org/late")
    engine = Engine(config)
    try:
        params = SamplingParams(max_tokens=200, ignore_eos=True)
        answer = engine.generate(GenerateRequest("r", "org/late", PROMPTS[0], params))
        while not isinstance(await anext(answer), Tokens):
            pass
        pid = engine.worker_pid("org/late")
        assert pid
        await engine.tokenizer("org/late")
        shutil.rmtree(path)
        assert "org/late" in {state.spec.name for state in engine.models()}, "it still answers"
        assert isinstance([update async for update in answer][-1], Finished)
        assert "org/late" not in {state.spec.name for state in engine.models()}
        assert engine.default_model == BUILTIN
        with pytest.raises(UnknownModel):
            engine.spec("org/late")
        while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)
        shutil.copytree(tiny_model, path)
        while "org/late" not in {state.spec.name for state in engine.models()}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        again = GenerateRequest("r2", "org/late", PROMPTS[0], SamplingParams(max_tokens=3))
        assert isinstance((await _run(engine, again))[-1], Finished)
    finally:
        await engine.close()


async def test_a_model_whose_new_revision_arrives_stays(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "org" / "late")
    engine = Engine(replace(engine_config(tiny_model), models_dir=tmp_path))
    (tmp_path / "org" / "late" / "config.json").unlink()
    assert "org/late" in {state.spec.name for state in engine.models()}
    await engine.close()


async def test_a_default_model_that_is_not_there_is_the_first_until_it_comes(
    tiny_model: Path, tmp_path: Path
) -> None:
    engine = Engine(
        replace(engine_config(tiny_model), models_dir=tmp_path, default_model="org/late")
    )
    first, *_ = [state for state in engine.models() if state.is_default]
    assert first.spec.name == engine.default_model == BUILTIN
    shutil.copytree(tiny_model, tmp_path / "org" / "late")
    assert [state.spec.name for state in engine.models() if state.is_default] == ["org/late"]
    await engine.close()
    broken = Engine(replace(engine_config(tiny_model), default_model=BUILTIN_EMBEDDING))
    assert broken.default_model == BUILTIN, "nobody can chat with that"
    await broken.close()


async def test_prompt_log_probabilities_come_whole_over_chunks(engine: Engine) -> None:
    """Each prompt token but the first is rated once, as one plain forward would rate it."""
    rated: list[TokenLogprob] = []
    request = _request("r", PROMPTS[3], num_prompt_logprobs=2, num_logprobs=0, max_tokens=3)
    updates = await _run(engine, request)
    for update in updates:
        if isinstance(update, PromptLogprobs):
            assert update.start == 1 + len(rated)
            rated += update.logprobs
    assert [r.token_id for r in rated] == list(PROMPTS[3][1:])
    assert {len(r.top) for r in rated} == {2}
    # Asked as an answer, the same tokens are as likely: the model is one.
    tail = PROMPTS[3][-1]
    bias = ((tail, 100.0),)
    again = _request("s", PROMPTS[3][:-1], num_logprobs=0, logit_bias=bias, max_tokens=1)
    (drawn,) = [r for u in await _run(engine, again) if isinstance(u, Tokens) for r in u.logprobs]
    assert drawn.token_id == tail
    assert drawn.logprob == pytest.approx(rated[-1].logprob, abs=1e-4)


async def test_penalties_and_grammars_go_on_after_a_death(engine: Engine) -> None:
    """Counts, grammar and ratings follow from what was emitted, so the next worker has them."""
    params = {
        "frequency_penalty": 1.5,
        "num_logprobs": 1,
        "num_prompt_logprobs": 0,
        "max_tokens": 40,
        "grammar": regex_grammar("([a-z]{1,4} ){200}"),
    }
    calm = await _run(engine, _request("calm", PROMPTS[1], **params))
    updates: list[Update] = []
    async for update in engine.generate(_request("shaken", PROMPTS[1], **params)):
        updates.append(update)
        if len(_ids(updates)) == 12 and isinstance(update, Tokens):
            pid = engine.worker_pid("tiny")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
    assert _ids(updates) == _ids(calm)
    assert re.fullmatch("([a-z]{1,4} ?)+", _text(updates))
    for kind in (Tokens, PromptLogprobs):
        first, second = (
            [r.token_id for u in story if isinstance(u, kind) for r in u.logprobs]
            for story in (calm, updates)
        )
        assert first == second
    assert _end(updates).timings.decode_ms > 0


async def test_a_chat_that_goes_on_computes_only_what_is_new(engine: Engine) -> None:
    """The prefix cache changes how long it takes, and nothing of what is said."""
    first = await _run(engine, _request("one", PROMPTS[3], temperature=1.0, seed=1))
    assert _end(first).usage.cached_tokens == 0
    again = await _run(engine, _request("again", PROMPTS[3], temperature=1.0, seed=1))
    assert _ids(again) == _ids(first)
    assert _end(again).usage.cached_tokens == len(PROMPTS[3]) - 1
    longer = (*PROMPTS[3], *_ids(first), 9, 8, 7)
    salted = [
        replace(_request(f"turn {salt}", longer), cache_salt=salt) for salt in ("", "somebody else")
    ]
    warm, cold = [await _run(engine, request) for request in salted]
    assert _ids(warm) == _ids(cold)
    assert _end(warm).usage.cached_tokens == len(PROMPTS[3]) + len(_ids(first)) - 1
    assert _end(cold).usage.cached_tokens == 0
    assert [u.num_cached for u in warm if isinstance(u, Prefill)][-1] > 100


async def test_siblings_share_one_prefill(engine: Engine) -> None:
    requests = [_request(f"s{i}", PROMPTS[3], temperature=1.0, seed=i) for i in range(4)]
    alone = [_ids(await _run(engine, replace(r, cache_salt=r.request_id))) for r in requests]
    updates = await asyncio.gather(*(_run(engine, request) for request in requests))
    assert [_ids(each) for each in updates] == alone
    cached = sorted(_end(each).usage.cached_tokens for each in updates)
    assert cached == [0, *[len(PROMPTS[3]) - 1] * 3]


async def test_leaving_the_iterator_frees_the_engine(engine: Engine) -> None:
    async for update in engine.generate(_request("left", PROMPTS[0], max_tokens=400)):
        if isinstance(update, Tokens):
            break
    await _run(engine, _request("next", PROMPTS[0]))
    assert engine.stats("tiny").num_running == 0
    assert engine.stats("tiny").kv_tokens_used == 0


async def test_an_abort_ends_the_answer_with_what_was_said(engine: Engine) -> None:
    updates: list[Update] = []
    async for update in engine.generate(_request("r", PROMPTS[0], max_tokens=400, ignore_eos=True)):
        updates.append(update)
        if isinstance(update, Tokens) and update.num_output == 5:
            engine.abort("tiny", "r")
    end = _end(updates)
    assert end.reason == "abort"
    assert end.timings.stop_ms > 0
    assert end.usage.completion_tokens == len(_ids(updates)) < 400


async def test_an_abort_before_the_model_is_ready_is_answered(engine: Engine) -> None:
    updates = []
    async for update in engine.generate(_request("early", PROMPTS[0])):
        updates.append(update)
        engine.abort("tiny", "early")
    assert [type(u) for u in updates] == [Loading, Finished]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_a_killed_worker_costs_a_pause_and_not_a_token(
    engine: Engine, temperature: float
) -> None:
    params = {"temperature": temperature, "seed": 11, "max_tokens": 200, "ignore_eos": True}
    undisturbed = await _run(engine, _request("calm", PROMPTS[1], **params))
    updates: list[Update] = []
    async for update in engine.generate(_request("storm", PROMPTS[1], **params)):
        updates.append(update)
        if isinstance(update, Tokens) and update.num_output == 20:
            pid = engine.worker_pid("tiny")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
    assert any(isinstance(u, Loading) for u in updates[3:])
    assert _ids(updates) == _ids(undisturbed)
    assert _text(updates) == _text(undisturbed)
    assert _end(updates).usage == _end(undisturbed).usage


async def test_fast_steps_are_told_together_and_say_the_same(
    engine: Engine, tiny_model: Path
) -> None:
    request = _request("r", PROMPTS[1], max_tokens=200, ignore_eos=True)
    expected = await _run(engine, request)
    gathering = Engine(engine_config(tiny_model, gather_s=0.03))
    try:
        updates = await _run(gathering, request)
    finally:
        await gathering.close()
    assert _ids(updates) == _ids(expected)
    told = [update for update in updates if isinstance(update, Tokens)]
    assert "".join(u.text for u in told) == "".join(
        u.text for u in expected if isinstance(u, Tokens)
    )
    assert len(told[0].ids) == 1, "the first is not held"
    assert len(told) < 150


async def test_a_worker_that_hangs_is_replaced(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model, watchdog_s=1.0))
    updates: list[Update] = []
    try:
        await _run(engine, _request("warm", PROMPTS[0]))
        await asyncio.sleep(1.5)  # idle is not stuck
        assert engine.state("tiny").state == "ready"
        async for update in engine.generate(
            _request("r", PROMPTS[1], max_tokens=200, ignore_eos=True)
        ):
            updates.append(update)
            if isinstance(update, Tokens) and update.num_output == 10:
                pid = engine.worker_pid("tiny")
                assert pid is not None
                os.kill(pid, signal.SIGSTOP)
    finally:
        await engine.close()
    assert len(_ids(updates)) == 200
    assert any(isinstance(u, Loading) for u in updates[3:])


async def test_a_request_that_sees_too_many_workers_die_fails(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "_MAX_DEATHS", 2)
    await _run(engine, _request("warm", PROMPTS[0]))
    kills = 0
    updates: list[Update] = []
    async for update in engine.generate(
        _request("poison", PROMPTS[0], max_tokens=400, ignore_eos=True)
    ):
        updates.append(update)
        pid = engine.worker_pid("tiny")
        if isinstance(update, Tokens) and update.num_output in (3, 30) and pid and kills < 2:
            os.kill(pid, signal.SIGKILL)
            kills += 1
    assert isinstance(updates[-1], Failed)
    assert updates[-1].code == "generation_failed"
    assert _end(await _run(engine, _request("after", PROMPTS[0]))).reason in ("stop", "length")


async def test_resuming_behind_the_last_token_ends_at_once(engine: Engine) -> None:
    first = await _run(engine, _request("first", PROMPTS[1], max_tokens=8, ignore_eos=True))
    request = _request("again", PROMPTS[1], max_tokens=8, ignore_eos=True)
    resumed = GenerateRequest(
        "again", "tiny", request.prompt_ids, request.params, tuple(_ids(first))
    )
    updates = await _run(engine, resumed)
    assert _ids(updates) == []
    assert _end(updates).reason == "length"
    assert _end(updates).usage.completion_tokens == 8


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        ((), "invalid_request"),
        ((10**6,), "invalid_request"),
        ((3,) * 600, "context_length_exceeded"),
    ],
)
async def test_a_bad_request_fails_alone(
    engine: Engine, prompt: tuple[int, ...], code: str
) -> None:
    good, bad = await asyncio.gather(
        _run(engine, _request("good", PROMPTS[1])), _run(engine, _request("bad", prompt))
    )
    assert isinstance(bad[-1], Failed)
    assert bad[-1].code == code
    assert isinstance(good[-1], Finished)


async def test_the_context_ends_an_answer_by_length(engine: Engine) -> None:
    prompt = (5,) * 500
    updates = await _run(engine, _request("long", prompt, max_tokens=1000, ignore_eos=True))
    assert _end(updates).reason == "length"
    assert _end(updates).usage.completion_tokens == 12


async def test_an_overfull_queue_says_when_to_come_back(tiny_model: Path) -> None:
    engine = Engine(engine_config(tiny_model, max_waiting_tokens=200, max_num_sequences=1))
    try:
        await _run(engine, _request("warm", PROMPTS[0]))
        all_updates = await asyncio.gather(
            *(
                _run(engine, _request(f"q{i}", PROMPTS[0], max_tokens=50, ignore_eos=True))
                for i in range(8)
            )
        )
    finally:
        await engine.close()
    refused = [u[-1] for u in all_updates if isinstance(u[-1], Failed)]
    assert refused
    assert all(r.code == "overloaded" and r.retry_after_s for r in refused)
    waited = [u for u in all_updates if isinstance(u[-1], Finished)]
    assert len(waited) >= 2
    positions = [[q.position for q in u if isinstance(q, Queued)] for u in waited]
    assert all(p == sorted(p, reverse=True) for p in positions)


async def test_many_sequences_outgrow_the_cache_and_all_end_right(tiny_model: Path) -> None:
    """More than the cache holds: some are preempted, none notices."""
    roomy, tight = (
        Engine(engine_config(tiny_model)),
        Engine(EngineConfig(**{**_as_dict(engine_config(tiny_model)), "kv_bytes": 1024 * 768})),
    )
    requests = [
        _request(f"r{i}", PROMPTS[2], temperature=1.0, seed=i, max_tokens=300, ignore_eos=True)
        for i in range(6)
    ]
    try:
        expected = await asyncio.gather(*(_run(roomy, r) for r in requests))
        found = await asyncio.gather(*(_run(tight, r) for r in requests))
        assert tight.stats("tiny").kv_tokens_used == 0
        assert tight.stats("tiny").kv_tokens_total < 6 * 340
    finally:
        await asyncio.gather(roomy.close(), tight.close())
    assert [_ids(u) for u in found] == [_ids(u) for u in expected]


async def test_an_unknown_model_is_named(engine: Engine) -> None:
    with pytest.raises(UnknownModel, match="gpt-9"):
        engine.generate(GenerateRequest("r", "gpt-9", (1,), SamplingParams(max_tokens=1)))


async def test_a_broken_model_says_why_and_can_be_mended(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    shutil.copytree(tiny_model, path)
    weights = path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    engine = Engine(engine_config(path))
    try:
        updates = await _run(engine, _request("r", PROMPTS[0]))
        assert isinstance(updates[-1], Failed)
        assert updates[-1].code == "model_refused"
        assert "cut short" in updates[-1].message
        assert engine.state("tiny").state == "failed"
        weights.write_bytes(whole)
        assert _end(await _run(engine, _request("r2", PROMPTS[0])))
    finally:
        await engine.close()


async def test_a_model_that_was_pulled_anew_has_its_new_tokenizer(
    tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "renewed"
    shutil.copytree(tiny_model, path)
    engine = Engine(engine_config(path))
    try:
        before = await engine.tokenizer("tiny")
        assert engine.sampling_defaults("tiny").temperature == 1.0
        await _run(engine, _request("r", PROMPTS[0]))
        assert await engine.tokenizer("tiny") is before, "a worker that starts changes nothing"
        (path / "generation_config.json").write_text('{"temperature": 0.25}')
        tokens = (path / "tokenizer.json").read_text()
        (path / "tokenizer.json").unlink()
        (path / "tokenizer.json").write_text(tokens)
        assert await engine.tokenizer("tiny") is before, "the worker has the old one"
        await engine.unload("tiny")
        await _run(engine, _request("r2", PROMPTS[0]))
        assert await engine.tokenizer("tiny") is not before
        assert engine.sampling_defaults("tiny").temperature == 0.25
    finally:
        await engine.close()


def _as_dict(config: EngineConfig) -> dict[str, object]:
    return {name: getattr(config, name) for name in EngineConfig.__slots__}
