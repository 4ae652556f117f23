"""/v1/completions and /v1/tokenize: prompts as they are, without a chat template."""

from typing import Any

import openai
import pytest

from tests.chat.api_caller import Caller
from tests.openai_description import check, needs_description

PROMPT = "Once upon a time"
SETTINGS: dict[str, Any] = {"model": "endless", "prompt": PROMPT, "max_tokens": 20, "seed": 5}


def _texts(client: openai.OpenAI, **asked: Any) -> list[str]:
    completion = client.completions.create(**{**SETTINGS, **asked})
    assert [choice.index for choice in completion.choices] == list(range(len(completion.choices)))
    return [choice.text for choice in completion.choices]


def _ids(caller: Caller, text: str) -> list[int]:
    found: list[int] = caller.post("/tokenize", {"model": "endless", "text": text}).json()["tokens"]
    return found


@needs_description
@pytest.mark.parametrize(
    "changes", [{}, {"n": 2}, {"logprobs": 2}, {"prompt": ["a", "b"]}, {"echo": True}], ids=str
)
def test_a_completion_is_as_published(caller: Caller, changes: dict[str, Any]) -> None:
    check(caller.post("/completions", {**SETTINGS, **changes}).json(), "CreateCompletionResponse")


def test_the_whole_and_the_stream_are_the_same(client: openai.OpenAI, caller: Caller) -> None:
    whole = client.completions.create(**SETTINGS)
    assert whole.object == "text_completion"
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 20
    *chunks, last, done = [
        data
        for _, data in caller.stream(
            "/completions", {**SETTINGS, "stream_options": {"include_usage": True}}
        )
    ]
    assert done == "[DONE]"
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole.choices[0].text
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "length"
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 20
    assert {chunk["object"] for chunk in [*chunks, last]} == {"text_completion"}


def test_no_template_stands_around_the_prompt(client: openai.OpenAI, caller: Caller) -> None:
    completion = client.completions.create(**SETTINGS)
    ids = _ids(caller, PROMPT)
    assert completion.usage is not None
    assert (
        len(ids) <= completion.usage.prompt_tokens <= len(ids) + 1
    )  # a mark that texts begin with
    messages = [{"role": "user", "content": PROMPT}]
    asked = {"model": "endless", "messages": messages}
    assert caller.post("/tokenize", asked).json()["count"] > len(ids) + 2


def test_every_shape_of_prompt_is_understood(client: openai.OpenAI, caller: Caller) -> None:
    [plain] = _texts(client)
    ids = _ids(caller, PROMPT)
    assert _texts(client, prompt=[PROMPT]) == [plain]
    assert _texts(client, prompt=[PROMPT, "Another"])[0] == plain
    by_ids = _texts(client, prompt=ids)
    assert _texts(client, prompt=[ids, ids]) == by_ids * 2
    assert len(_texts(client, prompt=["a", "b", "c"], n=2)) == 6


def test_choices_differ_and_come_again(client: openai.OpenAI) -> None:
    three = _texts(client, n=3)
    assert len(set(three)) == 3
    assert _texts(client, n=3) == three
    assert _texts(client)[0] == three[0]


def test_an_echo_and_its_logprobs(client: openai.OpenAI) -> None:
    [plain] = _texts(client)
    completion = client.completions.create(**SETTINGS, echo=True, logprobs=2)
    (choice,) = completion.choices
    assert choice.text == PROMPT + plain
    rated = choice.logprobs
    assert rated is not None
    assert rated.tokens is not None
    assert rated.token_logprobs is not None
    assert rated.top_logprobs is not None
    assert rated.token_logprobs[0] is None, "nothing stands in front of the first token"
    assert all(logprob <= 0 for logprob in rated.token_logprobs[1:])
    assert all(len(top) >= 1 for top in rated.top_logprobs[1:])
    assert completion.usage is not None
    assert len(rated.tokens) == completion.usage.prompt_tokens + 20
    assert rated.text_offset == [
        sum(map(len, rated.tokens[:index])) for index in range(len(rated.tokens))
    ]


def test_a_prompt_is_rated_and_nothing_written(client: openai.OpenAI) -> None:
    completion = client.completions.create(
        model="endless", prompt=PROMPT, max_tokens=0, echo=True, logprobs=0
    )
    (choice,) = completion.choices
    assert choice.text == PROMPT
    assert choice.finish_reason == "length"
    assert completion.usage is not None
    assert completion.usage.completion_tokens == 0
    assert choice.logprobs is not None
    assert len(choice.logprobs.tokens or []) == completion.usage.prompt_tokens


def test_a_streamed_echo_joins_to_the_whole(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {**SETTINGS, "echo": True, "logprobs": 1, "n": 2}
    whole = client.completions.create(**asked)
    texts, tokens = ["", ""], [[], []]  # type: ignore[var-annotated]
    for chunk in client.completions.create(stream=True, **asked):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            tokens[choice.index] += (choice.logprobs and choice.logprobs.tokens) or []
    assert texts == [choice.text for choice in whole.choices]
    assert tokens == [choice.logprobs and choice.logprobs.tokens for choice in whole.choices]


def test_a_stop_string_cuts(client: openai.OpenAI) -> None:
    [plain] = _texts(client)
    stop = plain[8:10]
    completion = client.completions.create(**SETTINGS, stop=stop)
    assert completion.choices[0].text == plain[: plain.index(stop)]
    assert completion.choices[0].finish_reason == "stop"


def test_a_bias_forces_a_token(client: openai.OpenAI) -> None:
    completion = client.completions.create(**SETTINGS, logit_bias={"40": 100}, logprobs=0)
    assert completion.choices[0].logprobs is not None
    assert len(set(completion.choices[0].logprobs.tokens or [])) == 1


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", "model"),
        ({"model": "all-minilm-l6-v2"}, 400, "wrong_model_kind", "model"),
        ({"prompt": None}, 400, "invalid_value", None),
        ({"prompt": []}, 400, "invalid_value", None),
        ({"prompt": ""}, 400, "invalid_request", None),
        ({"prompt": "half \ud800"}, 400, "invalid_value", "prompt"),
        ({"prompt": [1, "two"]}, 400, "invalid_value", None),
        ({"prompt": [10**6]}, 400, "invalid_request", None),
        ({"prompt": [-1]}, 400, "invalid_value", "prompt.0"),
        ({"prompt": [1, 2**32]}, 400, "invalid_value", "prompt.1"),
        ({"prompt": [[1], [2**70]]}, 400, "invalid_value", "prompt.1.0"),
        ({"prompt": "word " * 2000}, 400, "context_length_exceeded", "prompt"),
        ({"suffix": "the end"}, 400, "invalid_value", "suffix"),
        ({"best_of": 3}, 400, "invalid_value", "best_of"),
        ({"logprobs": 6}, 400, "invalid_value", "logprobs"),
        ({"max_tokens": 0}, 400, "invalid_parameter", "max_tokens"),
        ({"max_tokens": -1}, 400, "invalid_value", "max_tokens"),
        ({"temperature": 9.5}, 400, "invalid_value", "temperature"),
        ({"stop": ["a"] * 5}, 400, "invalid_value", "stop"),
        ({"prompt": ["a"] * 100, "n": 2}, 400, "invalid_parameter", "n"),
        ({"messages": []}, 400, "invalid_value", "messages"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests_name_what_is_wrong(
    caller: Caller,
    changes: dict[str, Any],
    status: int,
    code: str,
    param: str | None,
    stream: bool,
) -> None:
    response = caller.post("/completions", {**SETTINGS, "stream": stream, **changes})
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert param is None or error["param"] == param


def test_tokens_of_a_text_and_of_a_chat(caller: Caller) -> None:
    body = caller.post("/tokenize", {"model": "endless", "text": "Hello there"}).json()
    assert set(body) == {"tokens", "count"}
    assert body["count"] == len(body["tokens"]) > 0
    messages = [{"role": "user", "content": "Hello there"}]
    chat = caller.post("/tokenize", {"model": "endless", "messages": messages}).json()
    asked = {"model": "endless", "messages": messages, "max_tokens": 1}
    answered = caller.post("/chat/completions", asked).json()
    assert chat["count"] == answered["usage"]["prompt_tokens"] > body["count"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "endless"}, 400),
        ({"model": "endless", "text": "a", "messages": [{"role": "user", "content": "a"}]}, 400),
        ({"model": "gpt-9", "text": "a"}, 404),
        ({"model": "all-minilm-l6-v2", "text": "a"}, 400),
        ({"text": "a"}, 400),
    ],
)
def test_what_cannot_be_counted(caller: Caller, body: dict[str, Any], status: int) -> None:
    response = caller.post("/tokenize", body)
    assert response.status_code == status
    assert response.json()["error"]["message"]
