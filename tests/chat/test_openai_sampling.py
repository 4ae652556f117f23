"""n, logprobs, bias and penalties over /v1, with OpenAI's own client."""

import json
import math
from collections import Counter
from typing import Any

import openai
import pytest

from tests.chat.test_openai_api import HELLO

SETTINGS: dict[str, Any] = {"model": "endless", "messages": HELLO, "max_tokens": 30, "seed": 5}


def _texts(completion: Any) -> list[str]:
    assert [choice.index for choice in completion.choices] == list(range(len(completion.choices)))
    return [choice.message.content for choice in completion.choices]


def test_several_choices_differ_and_come_again(client: openai.OpenAI) -> None:
    three = client.chat.completions.create(n=3, **SETTINGS)
    texts = _texts(three)
    assert len(set(texts)) == 3
    assert _texts(client.chat.completions.create(n=3, **SETTINGS)) == texts
    assert _texts(client.chat.completions.create(**SETTINGS)) == texts[:1]
    assert three.usage is not None
    assert three.usage.completion_tokens == 90
    assert three.usage.total_tokens == three.usage.prompt_tokens + 90


def test_streamed_choices_are_the_whole_ones(client: openai.OpenAI) -> None:
    whole = _texts(client.chat.completions.create(n=3, **SETTINGS))
    streamed = ["", "", ""]
    ends: list[int] = []
    usages: list[Any] = []
    for chunk in client.chat.completions.create(
        n=3, stream=True, stream_options={"include_usage": True}, **SETTINGS
    ):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
            ends += [choice.index] if choice.finish_reason else []
        usages += [chunk.usage] if chunk.usage else []
    assert streamed == whole
    assert sorted(ends) == [0, 1, 2]
    assert [usage.completion_tokens for usage in usages] == [90]


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_tell_the_text_byte_by_byte(client: openai.OpenAI, stream: bool) -> None:
    asked = {**SETTINGS, "logprobs": True, "top_logprobs": 4}
    if stream:
        chunks = [c for c in client.chat.completions.create(stream=True, **asked) if c.choices]
        text = "".join(c.choices[0].delta.content or "" for c in chunks)
        rated = [t for c in chunks for t in (c.choices[0].logprobs or _Empty).content or []]
    else:
        (choice,) = client.chat.completions.create(**asked).choices
        text, rated = choice.message.content or "", choice.logprobs.content
    assert len(rated) == 30
    raw = b"".join(bytes(token.bytes) for token in rated)
    assert raw.decode(errors="ignore").strip() == text.replace("\ufffd", "").strip()
    for token in rated:
        likely = [top.logprob for top in token.top_logprobs]
        assert len(likely) == 4
        assert likely == sorted(likely, reverse=True)
        assert token.logprob <= likely[0] + 1e-6 <= 1e-6
        assert sum(math.exp(logprob) for logprob in likely) < 1.0001


class _Empty:
    content: list[Any] = []


def _ids(client: openai.OpenAI, **asked: Any) -> list[bytes]:
    """The drawn tokens of a greedy answer, as their bytes."""
    settings = {**SETTINGS, "temperature": 0, "logprobs": True, **asked}
    (choice,) = client.chat.completions.create(**settings).choices
    return [bytes(token.bytes) for token in choice.logprobs.content]


def test_a_bias_forces_a_token_and_forbids_it(client: openai.OpenAI) -> None:
    forced = _ids(client, logit_bias={"40": 100})
    assert len(set(forced)) == 1
    forbidden = _ids(client, logit_bias={"40": -100})
    assert forced[0] not in forbidden


def test_penalties_make_repetition_rarer(client: openai.OpenAI) -> None:
    plain = Counter(_ids(client, max_tokens=60))
    for penalty in ({"frequency_penalty": 2.0}, {"extra_body": {"repetition_penalty": 5.0}}):
        varied = Counter(_ids(client, max_tokens=60, **penalty))
        assert max(varied.values()) < max(plain.values()), (penalty, plain)


def test_least_tokens_outlast_stop_and_end(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**SETTINGS).choices[0].message.content
    assert whole
    settings = {**SETTINGS, "stop": [whole[2]]}
    short = client.chat.completions.create(**settings)
    long = client.chat.completions.create(extra_body={"min_tokens": 25}, **settings)
    assert short.usage is not None
    assert long.usage is not None
    assert short.usage.completion_tokens < 25 <= long.usage.completion_tokens


CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"type": "integer", "minimum": 1, "maximum": 99},
        "kind": {"enum": ["village", "town"]},
    },
    "required": ["name", "size", "kind"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_follows_its_schema(client: openai.OpenAI, seed: int) -> None:
    """From a model with random weights: the grammar alone makes it right."""
    schema: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    completion = client.chat.completions.create(
        **{**SETTINGS, "max_tokens": 300, "seed": seed}, response_format=schema, temperature=1.5
    )
    (choice,) = completion.choices
    assert choice.finish_reason == "stop"
    city = json.loads(choice.message.content or "")
    assert sorted(city) == ["kind", "name", "size"]
    assert 1 <= city["size"] <= 99
    assert city["kind"] in ("village", "town")
    assert len(city["name"]) <= 12
