"""Every wrong parameter is named; every right one passes."""

from dataclasses import replace
from typing import Any

import pytest

from inference import (
    ContextTooLong,
    GenerateRequest,
    InvalidParameter,
    RequestError,
    SamplingParams,
)
from inference.checks import check_request

RIGHT = SamplingParams(max_tokens=10)


def _check(prompt: tuple[int, ...] = (1, 2), output: tuple[int, ...] = (), **params: Any) -> None:
    request = GenerateRequest("r", "m", prompt, replace(RIGHT, **params), output)
    check_request(request, max_context_tokens=20, vocab_size=100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("min_tokens", 11),
        ("temperature", float("nan")),
        ("temperature", -0.1),
        ("temperature", float("inf")),
        ("temperature", 10**400),
        ("top_k", -1),
        ("top_k", 2**63),
        ("top_p", 1.01),
        ("min_p", float("nan")),
        ("presence_penalty", 2.1),
        ("frequency_penalty", float("-inf")),
        ("repetition_penalty", 0),
        ("seed", 2**64),
        ("seed", -(10**400)),
        ("max_tokens", float("inf")),
        ("num_logprobs", 21),
        ("num_prompt_logprobs", -1),
        ("logit_bias", ((100, 1.0),)),
        ("logit_bias", ((10**400, 1.0),)),
        ("logit_bias", ((1, float("nan")),)),
        ("logit_bias", tuple((1, 1.0) for _ in range(100_000))),
        ("stop_token_ids", (100,)),
        ("stop_token_ids", tuple(range(65))),
        ("stop", ("x" * 10**6,)),
    ],
)
def test_a_wrong_parameter_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        _check(**{name: value})
    assert caught.value.param == name
    assert len(str(caught.value)) < 200


def test_a_right_request_passes() -> None:
    _check()
    _check(max_tokens=10**9, seed=-(2**63), logit_bias=((99, -100.0),), stop=("x",), num_logprobs=0)
    _check(output=(3,) * 18)


def test_wrong_prompts() -> None:
    with pytest.raises(RequestError, match="empty"):
        _check(())
    with pytest.raises(ContextTooLong, match="take 20 tokens"):
        _check((1,) * 20)
    for ids in ((100,), (-1,)):
        with pytest.raises(RequestError, match="does not know"):
            _check(ids)
    with pytest.raises(RequestError, match="resumed"):
        _check(output=(1,) * 19)
