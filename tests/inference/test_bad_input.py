"""Bad input: an error of its own kind each, and whoever asks for something good notices nothing."""

import asyncio
import json
import pickle
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from inference import (
    Engine,
    EngineError,
    Failed,
    GenerateRequest,
    Tokens,
    Update,
    json_schema_grammar,
    regex_grammar,
)
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _end, _ids, _request, _run, _text

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all: it has to run on

GOOD = _request("good", PROMPTS[2], temperature=1.0, seed=5, max_tokens=60, ignore_eos=True)
NAN = float("nan")
NEVER_TRUE = json.dumps({"grammars": [{"json_schema": {"enum": []}}]})
NO_END = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(
    tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Engine]:
    """With a sound model, and one whose last byte of weights is missing."""
    cut = tmp_path_factory.mktemp("bad") / "cut"
    shutil.copytree(tiny_model, cut)
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    config = engine_config(tiny_model)
    running = Engine(replace(config, extra_models=(*config.extra_models, f"cut={cut}")))
    yield running
    await running.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def expected(engine: Engine) -> list[Update]:
    return await _run(engine, GOOD)


async def _beside_a_good_one(
    engine: Engine, expected: list[Update], bad: GenerateRequest
) -> list[Update]:
    """What the bad one hears that is asked in the middle of a good answer, which stays as it is."""
    heard: list[Update] = []
    answer: asyncio.Task[list[Update]] | None = None
    pid = engine.worker_pid("tiny")
    async for update in engine.generate(replace(GOOD, cache_salt=bad.request_id)):
        heard.append(update)
        if isinstance(update, Tokens) and update.num_output == 3:
            answer = asyncio.create_task(_run(engine, bad))
    assert answer is not None
    await asyncio.wait({answer})
    assert _ids(heard) == _ids(expected)
    assert _text(heard) == _text(expected)
    assert _end(heard).reason == _end(expected).reason
    assert engine.worker_pid("tiny") == pid, "it is the same worker"
    return answer.result()


@pytest.mark.parametrize(
    ("prompt", "params", "code", "param"),
    [
        ((), {}, "invalid_request", None),
        ((3,) * 512, {}, "context_length_exceeded", None),
        ((3,) * 10**6, {}, "context_length_exceeded", None),
        ((3, 10**9), {}, "invalid_request", None),
        ((3, -1), {}, "invalid_request", None),
        ((3,), {"temperature": NAN}, "invalid_parameter", "temperature"),
        ((3,), {"temperature": 10**400}, "invalid_parameter", "temperature"),
        ((3,), {"top_p": NAN}, "invalid_parameter", "top_p"),
        ((3,), {"seed": 10**400}, "invalid_parameter", "seed"),
        ((3,), {"max_tokens": 0}, "invalid_parameter", "max_tokens"),
        ((3,), {"max_tokens": -(10**9)}, "invalid_parameter", "max_tokens"),
        ((3,), {"logit_bias": ((3, NAN),)}, "invalid_parameter", "logit_bias"),
        ((3,), {"stop": ("x" * 10**7,)}, "invalid_parameter", "stop"),
        ((3,), {"stop_token_ids": (10**9,)}, "invalid_parameter", "stop_token_ids"),
        ((3,), {"grammar": "x" * 10**7}, "invalid_parameter", "grammar"),
        ((3,), {"grammar": "start: no such rule"}, "invalid_parameter", "grammar"),
        ((3,), {"grammar": NEVER_TRUE}, "invalid_parameter", "grammar"),
        # What the type checker would have said, from who does not ask it.
        (None, {}, "invalid_parameter", "prompt_ids"),
        ([3, 4], {}, "invalid_parameter", "prompt_ids"),
        ((3, 4.0), {}, "invalid_parameter", "prompt_ids"),
        ((True,), {}, "invalid_parameter", "prompt_ids"),
        ((3,), {"temperature": "1"}, "invalid_parameter", "temperature"),
        ((3,), {"temperature": None}, "invalid_parameter", "temperature"),
        ((3,), {"seed": 1.5}, "invalid_parameter", "seed"),
        ((3,), {"seed": None}, "invalid_parameter", "seed"),
        ((3,), {"max_tokens": 2.5}, "invalid_parameter", "max_tokens"),
        ((3,), {"top_k": 1.5}, "invalid_parameter", "top_k"),
        ((3,), {"logit_bias": None}, "invalid_parameter", "logit_bias"),
        ((3,), {"logit_bias": ((3,),)}, "invalid_parameter", "logit_bias"),
        ((3,), {"stop": "end"}, "invalid_parameter", "stop"),
        ((3,), {"stop": (b"end",)}, "invalid_parameter", "stop"),
        ((3,), {"grammar": b"start"}, "invalid_parameter", "grammar"),
        ((3,), {"num_logprobs": 1.5}, "invalid_parameter", "num_logprobs"),
    ],
    ids=lambda value: f"{value!s:.30}",
)
async def test_a_bad_request_is_told_what_is_wrong(
    engine: Engine,
    expected: list[Update],
    prompt: tuple[int, ...],
    params: dict[str, Any],
    code: str,
    param: str | None,
) -> None:
    said = await _beside_a_good_one(engine, expected, _request("bad", prompt, **params))
    assert isinstance(said[-1], Failed)
    assert (said[-1].code, said[-1].param) == (code, param)
    assert len(said[-1].message) < 300
    assert _ids(said) == []


@pytest.mark.parametrize(
    ("param", "value"),
    [
        *(("weight", value) for value in (0.0, -1.0, NAN, float("inf"), "1")),
        *(("priority", value) for value in ("emperor", None, ["api"])),
        *(("user", value) for value in (None, 3)),
        ("cache_salt", None),
        ("output_ids", [3]),
        ("num_prompt_rated", None),
    ],
)
async def test_a_bad_caller_is_told_what_is_wrong(
    engine: Engine, param: str, value: object
) -> None:
    said = await _run(engine, replace(GOOD, **{param: value}))
    assert isinstance(said[-1], Failed)
    assert (said[-1].code, said[-1].param) == ("invalid_parameter", param)


async def test_ten_megabytes_of_biases_are_too_many(engine: Engine, expected: list[Update]) -> None:
    biases = tuple((i % 300 + 3, i / 1e6) for i in range(800_000))
    assert len(pickle.dumps(biases)) > 10 * 2**20
    said = await _beside_a_good_one(engine, expected, _request("bad", (3,), logit_bias=biases))
    assert isinstance(said[-1], Failed)
    assert (said[-1].code, said[-1].param) == ("invalid_parameter", "logit_bias")
    assert "at most 1024" in said[-1].message


@pytest.mark.parametrize(
    ("grammar", "never"),
    [("", "x"), (json_schema_grammar(NO_END), "x"), (regex_grammar("(ab)*z"), "z")],
    ids=["no end of turn", "an object within itself", "a string that is never closed"],
)
@pytest.mark.parametrize("max_tokens", [40, 10**9])
async def test_what_never_ends_ends_by_length(
    engine: Engine, expected: list[Update], max_tokens: int, grammar: str, never: str
) -> None:
    """As long as it may be, or until the context is full."""
    (token_id,) = (await engine.tokenizer("tiny")).encode(never)
    bias = ((token_id, -100.0),)
    bad = _request(
        "endless",
        (3,) * 9,
        max_tokens=max_tokens,
        grammar=grammar,
        logit_bias=bias,
        ignore_eos=True,
    )
    said = await _beside_a_good_one(engine, expected, bad)
    assert _end(said).reason == "length"
    assert _end(said).usage.completion_tokens == len(_ids(said)) == min(max_tokens, 512 - 9)


async def test_an_unknown_model_is_told_at_once(engine: Engine, expected: list[Update]) -> None:
    with pytest.raises(EngineError, match="gpt-9") as caught:
        await _beside_a_good_one(engine, expected, replace(GOOD, model="gpt-9"))
    assert caught.value.code == "model_not_found"


async def test_truncated_weights_fail_their_model_alone(
    engine: Engine, expected: list[Update]
) -> None:
    bad = replace(_request("bad", PROMPTS[0]), model="cut")
    said = await _beside_a_good_one(engine, expected, bad)
    assert isinstance(said[-1], Failed)
    assert said[-1].code == "model_refused"
    assert "cut short" in said[-1].message
    assert engine.state("cut").state == "failed"
    assert engine.state("tiny").state == "ready"
