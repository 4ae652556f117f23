"""Every answer of /v1 and every chunk is what OpenAI publishes of its own."""

from typing import Any

import pytest

from inference import BUILTIN_EMBEDDING
from tests.chat.api_caller import Caller
from tests.openai_description import check, needs_description, problems_with

pytestmark = needs_description

HELLO = [{"role": "user", "content": "Hello"}]
LAMP = {
    "type": "function",
    "function": {"name": "lamp", "parameters": {"properties": {"is_on": {"type": "boolean"}}}},
}
ASKED: list[dict[str, Any]] = [
    {},
    {"n": 3},
    {"logprobs": True, "top_logprobs": 2},
    {"stop": ["e"]},
    {"response_format": {"type": "json_object"}, "max_tokens": 3},
    {"model": "caller", "tools": [LAMP], "tool_choice": "required", "parallel_tool_calls": False},
]


def _body(changes: dict[str, Any]) -> dict[str, Any]:
    limit = 200 if "tools" in changes else 20
    return {"model": "endless", "messages": HELLO, "seed": 5, "max_tokens": limit, **changes}


@pytest.mark.parametrize("changes", ASKED, ids=str)
def test_a_chat_completion(caller: Caller, changes: dict[str, Any]) -> None:
    body = caller.post("/chat/completions", _body(changes)).json()
    check(body, "CreateChatCompletionResponse")
    assert set(body["timings"]) == {
        "queued_ms",
        "prefill_ms",
        "ttft_ms",
        "decode_ms",
        "total_ms",
    }
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] >= 0
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


@pytest.mark.parametrize("changes", ASKED, ids=str)
def test_chunks_of_a_chat_completion(caller: Caller, changes: dict[str, Any]) -> None:
    assert caller.post("/chat/completions", _body(changes)).status_code == 200
    body = _body(changes) | {"stream_options": {"include_usage": True}}
    *chunks, done = [data for _, data in caller.stream("/chat/completions", body)]
    assert done == "[DONE]"
    for chunk in chunks:
        check(chunk, "CreateChatCompletionStreamResponse")
        for choice in chunk["choices"]:
            assert "finish_reason" in choice, "present though null"
            assert "logprobs" in choice
    *others, last = chunks
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, "it was read just now"
    assert last["timings"]["total_ms"] >= last["timings"]["ttft_ms"]
    assert last["timings"]["decode_ms"] > 0
    assert not any("usage" in chunk for chunk in others), "the usage comes last, for all choices"
    assert {chunk["choices"][0]["delta"].get("role") for chunk in others[: body.get("n", 1)]} == {
        "assistant"
    }
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_models(caller: Caller) -> None:
    models = caller.get("/models").json()
    check(models, "ListModelsResponse")
    check(caller.get("/models/endless").json(), "Model")


def test_embeddings(caller: Caller) -> None:
    for given in ("one", ["one", "two"], [101, 102], [[101], [102]]):
        body = {"model": BUILTIN_EMBEDDING, "input": given, "encoding_format": "float"}
        check(caller.post("/embeddings", body).json(), "CreateEmbeddingResponse")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", "{"),
        ("/chat/completions", {"model": "endless", "messages": []}),
        ("/chat/completions", {"model": "nobody", "messages": HELLO}),
        ("/embeddings", {"model": "endless", "input": "x"}),
        ("/nowhere", {}),
    ],
)
def test_errors(caller: Caller, path: str, body: Any) -> None:
    response = caller.post(path, body)
    assert 400 <= response.status_code < 500
    check(response.json(), "ErrorResponse")
    assert response.headers["x-request-id"]


def test_the_check_itself_sees_what_is_wrong() -> None:
    """A validator that lets everything through would make this module worthless."""
    good = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": None,
                "message": {"role": "assistant", "content": "x", "refusal": None},
            }
        ],
    }
    name = "CreateChatCompletionResponse"
    assert problems_with(good, name) == []
    [choice] = good["choices"]  # type: ignore[misc]
    for broken in (
        {**good, "created": "now"},
        {**good, "object": "chat"},
        {key: good[key] for key in good if key != "id"},
        {**good, "choices": [{**choice, "finish_reason": "end"}]},
        {**good, "choices": [{**choice, "message": {"role": "assistant", "content": "x"}}]},
        {**good, "choices": [{key: choice[key] for key in choice if key != "logprobs"}]},
        {**good, "usage": {"prompt_tokens": 1.5}},
    ):
        assert len(problems_with(broken, name)) >= 1, broken
