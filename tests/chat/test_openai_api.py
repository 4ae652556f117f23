"""/v1 with OpenAI's own client, unmodified, and what raw callers may do wrong."""

import json
import re
import threading
import time
from typing import Any

import httpx2
import openai
import pytest

from tests.sites import Site, wait_until

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _with_parameters(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**TOOL, "function": {**TOOL["function"], "parameters": schema, **more}}


def _deep(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def test_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert {"endless", "short"} <= set(names)
    assert client.models.retrieve("short").id == "short"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-9")
    assert caught.value.code == "model_not_found"


def test_a_completion(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model="short", messages=HELLO, max_tokens=9, seed=3, temperature=0.7
    )
    assert completion.object == "chat.completion"
    (choice,) = completion.choices
    assert choice.message.role == "assistant"
    assert choice.finish_reason in ("stop", "length")
    assert completion.usage is not None
    assert 0 < completion.usage.completion_tokens <= 9
    assert (
        completion.usage.total_tokens
        == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )


def test_a_stream_joins_to_the_whole(client: openai.OpenAI) -> None:
    settings: dict[str, Any] = {"model": "endless", "messages": HELLO, "max_tokens": 60, "seed": 5}
    whole = client.chat.completions.create(**settings)
    chunks = list(
        client.chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **settings
        )
    )
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    *_, last = chunks
    assert last.choices == []
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.completion_tokens == whole.usage.completion_tokens == 60


def test_usage_comes_only_when_asked_for(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(model="short", messages=HELLO, max_tokens=3, stream=True)
    )
    assert all(chunk.choices for chunk in chunks)


def test_stop_strings_cut_the_text(client: openai.OpenAI) -> None:
    settings: dict[str, Any] = {"model": "endless", "messages": HELLO, "max_tokens": 60, "seed": 5}
    whole = client.chat.completions.create(**settings).choices[0].message.content
    assert whole
    stop = whole[20:23]
    cut = client.chat.completions.create(stop=[stop, "never seen"], **settings)
    assert cut.choices[0].message.content == whole[: whole.index(stop)].strip()
    assert cut.choices[0].finish_reason == "stop"


def test_a_client_that_leaves_frees_the_engine(chat_site: Site, key: str) -> None:
    body = {"model": "endless", "messages": HELLO, "stream": True}
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=chat_site.url, headers=headers, timeout=30) as visitor:
        with visitor.stream("POST", "/v1/chat/completions", json=body) as response:
            next(response.iter_lines())
        # The endless model writes for seconds; a slot that was not freed would slow this one down.
        started = time.monotonic()
        visitor.post("/v1/chat/completions", json={**body, "stream": False, "max_tokens": 2})
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", "model"),
        ({"messages": []}, 400, "invalid_value", "messages"),
        ({"messages": None}, 400, "invalid_value", "messages"),
        (
            {"messages": [{"role": "wizard", "content": "x"}]},
            400,
            "invalid_value",
            "messages.0.role",
        ),
        ({"messages": [{"role": "user"}]}, 400, "invalid_value", "messages.0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "invalid_value", "messages.0"),
        (
            {"messages": [*HELLO, {"role": "tool", "tool_call_id": "1", "content": "x"}]},
            400,
            "invalid_value",
            "messages",
        ),
        ({"temperature": 9.5}, 400, "invalid_value", "temperature"),
        ({"temperature": "hot"}, 400, "invalid_value", "temperature"),
        ({"top_p": -1}, 400, "invalid_value", "top_p"),
        ({"max_tokens": 0}, 400, "invalid_value", "max_tokens"),
        ({"max_tokens": 10**12}, 400, "invalid_value", "max_tokens"),
        ({"n": 10**6}, 400, "invalid_value", "n"),
        ({"n": 0}, 400, "invalid_value", "n"),
        ({"stop": [""]}, 400, "invalid_value", "stop"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "invalid_value", "top_logprobs"),
        ({"top_logprobs": 2}, 400, "invalid_value", "top_logprobs"),
        ({"presence_penalty": 2.1}, 400, "invalid_value", "presence_penalty"),
        ({"repetition_penalty": 0}, 400, "invalid_value", "repetition_penalty"),
        ({"logit_bias": {"x": 1}}, 400, "invalid_value", None),
        ({"logit_bias": {"1": 101}}, 400, "invalid_value", None),
        ({"logit_bias": {str(i): 1 for i in range(2000)}}, 400, "invalid_value", "logit_bias"),
        ({"logit_bias": {"999999": 1}}, 400, "invalid_parameter", "logit_bias"),
        ({"stop_token_ids": [-1]}, 400, "invalid_parameter", "stop_token_ids"),
        ({"min_tokens": 5, "max_tokens": 3}, 400, "invalid_parameter", "min_tokens"),
        ({"messages": [{**HELLO[0], "weight": 1}]}, 400, "invalid_value", "messages.0.weight"),
        ({"tools": [{**TOOL, "strict": True}]}, 400, "invalid_value", None),
        ({"tools": [TOOL, TOOL]}, 400, "invalid_value", None),
        ({"tools": [_with_parameters({"description": "\ud800"})]}, 400, "invalid_value", None),
        (
            {"tools": [{**TOOL, "function": {"name": "x", "description": "\ud800"}}]},
            400,
            "invalid_value",
            None,
        ),
        ({"tools": [_with_parameters(_deep(200))]}, 400, "invalid_value", None),
        ({"tool_choice": "required"}, 400, "invalid_value", "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "required"}, 400, "invalid_parameter", "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "always"}, 400, "invalid_value", None),
        ({"tools": [TOOL], "tool_choice": _named("other")}, 400, "invalid_value", None),
        (
            {
                "model": "caller",
                "tools": [_with_parameters({"type": "nope"}, strict=True)],
                "tool_choice": "required",
            },
            400,
            "invalid_parameter",
            "tools",
        ),
        ({"seed": 2**70}, 400, "invalid_value", "seed"),
        ({"functions": []}, 400, "invalid_value", "functions"),
        ({"reasoning_effort": "high"}, 400, "invalid_parameter", "reasoning_effort"),
        ({"messages": [{"role": "user", "content": 7}]}, 400, "invalid_value", None),
        (
            {"messages": [{"role": "user", "content": "word " * 5000}, *HELLO]},
            400,
            "context_length_exceeded",
            "messages",
        ),
        ({"response_format": {"type": "xml"}}, 400, "invalid_value", None),
        ({"response_format": {"type": "json_schema"}}, 400, "invalid_value", None),
        (
            {"response_format": _schema({"type": "nope"})},
            400,
            "invalid_parameter",
            "response_format",
        ),
        (
            {"response_format": _schema({"$ref": "#/nowhere"})},
            400,
            "invalid_parameter",
            "response_format",
        ),
        (
            {"response_format": _schema({"enum": ["x" * 1000] * 1000})},
            400,
            "invalid_parameter",
            "response_format",
        ),
        (
            {"messages": [{"role": "user", "content": "word " * 5000}]},
            400,
            "context_length_exceeded",
            "messages",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests_name_what_is_wrong(
    chat_site: Site,
    key: str,
    changes: dict[str, Any],
    status: int,
    code: str,
    param: str | None,
    stream: bool,
) -> None:
    body = {"model": "endless", "messages": HELLO, "stream": stream, **changes}
    response = _post(chat_site, key, json.dumps(body))
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert param is None or error["param"] == param
    assert "constrained" not in str(error)
    if code == "context_length_exceeded":
        assert "holds 700." in error["message"], "the model's context, not a part of it"
        assert re.search(r"context_length_exceeded: .* take [0-9]+ tokens", error["message"])


@pytest.mark.parametrize("body", ["{", "[]", '"text"', "[" * 100_000, '{"model": NaN}'])
def test_no_json_is_a_400(chat_site: Site, key: str, body: str) -> None:
    response = _post(chat_site, key, body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_an_answer_sent_back_as_it_came_is_understood(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="short", messages=HELLO, max_tokens=5)
    said = answer.choices[0].message.model_dump()
    again: list[Any] = [{**HELLO[0], "name": "Eve"}, said, *HELLO]
    client.chat.completions.create(model="short", messages=again, max_tokens=5)


def test_a_wrong_key_is_a_401(chat_site: Site) -> None:
    response = _post(chat_site, "vt_wrong", "{}")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"


def test_tools_of_the_caller_are_shown_to_the_model(client: openai.OpenAI) -> None:
    """A random model calls nothing; the template has to take schemas, calls and results."""
    messages: list[Any] = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]
    completion = client.chat.completions.create(
        model="endless",
        messages=messages,
        tools=[TOOL],  # type: ignore[list-item]
        max_tokens=3,
    )
    assert completion.choices[0].message.tool_calls is None


def test_many_at_once_all_end(chat_site: Site, key: str) -> None:
    statuses: list[int] = []

    def call(number: int) -> None:
        body = {"model": "short", "messages": HELLO, "max_tokens": 8, "seed": number}
        statuses.append(_post(chat_site, key, json.dumps(body)).status_code)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 24


def test_every_answer_has_a_request_id(chat_site: Site, key: str) -> None:
    first, second = (_post(chat_site, key, "{}").headers["x-request-id"] for _ in range(2))
    assert first != second
    wait_until(lambda: first in (chat_site.data_dir / "logs" / "vitrine.log").read_text())


def _post(site: Site, key: str, body: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with httpx2.Client(base_url=site.url, headers=headers, timeout=60) as visitor:
        return visitor.post("/v1/chat/completions", content=body)


def test_a_wrong_method_and_a_huge_body_have_the_shape_of_errors(chat_site: Site, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    with chat_site.visitor() as visitor:
        response = visitor.get("/v1/chat/completions", headers=headers)
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")
        assert response.json()["error"]["code"] == "method_not_allowed"
        body = json.dumps({"model": "short", "messages": HELLO, "user": "x" * 11 * 2**20})
        response = visitor.post("/v1/chat/completions", content=body, headers=headers)
        assert response.status_code == 413
        assert response.json()["error"]["code"]
