"""What OpenAI's and Anthropic's clients may send works, changes nothing, or is refused by its name."""

from typing import Any

import pytest
from ninja import Schema

from chat.audio_schemas import SpeechIn, TranscriptionIn, TranslationIn
from chat.image_schemas import ImageEditIn, ImageIn
from chat.openai_embeddings import EmbeddingsIn
from chat.openai_moderations import ModerationIn
from chat.openai_schemas import ChatCompletionIn
from chat.openai_text import TextCompletionIn
from chat.responses_schemas import ResponseIn
from chat.vector_store_schemas import (
    FileBatchIn,
    VectorStoreChange,
    VectorStoreFileIn,
    VectorStoreIn,
    VectorStoreSearchIn,
)
from inference import BUILTIN_EMBEDDING
from tests.chat.api_caller import Caller
from tests.images import data_url, png
from tests.openai_description import fields_of, needs_description

HELLO: dict[str, Any] = {"role": "user", "content": "Hello"}
PICTURE = {"type": "image_url", "image_url": {"url": data_url(png())}}
CHAT: dict[str, Any] = {"model": "short", "messages": [HELLO], "max_tokens": 1}
RESPONSE: dict[str, Any] = {"model": "short", "input": "Hello", "max_output_tokens": 1}
MESSAGE: dict[str, Any] = {"model": "short", "messages": [HELLO], "max_tokens": 1}
EMBEDDING: dict[str, Any] = {"model": BUILTIN_EMBEDDING, "input": "Hello"}
BODIES = {
    "/chat/completions": CHAT,
    "/responses": RESPONSE,
    "/messages": MESSAGE,
    "/embeddings": EMBEDDING,
    "/completions": {"model": "short", "prompt": "Hello", "max_tokens": 1},
}


@needs_description
@pytest.mark.parametrize(
    ("published", "body"),
    [
        ("CreateChatCompletionRequest", ChatCompletionIn),
        ("CreateResponse", ResponseIn),
        ("CreateCompletionRequest", TextCompletionIn),
        ("CreateEmbeddingRequest", EmbeddingsIn),
        ("CreateModerationRequest", ModerationIn),
        ("CreateTranscriptionRequest", TranscriptionIn),
        ("CreateTranslationRequest", TranslationIn),
        ("CreateSpeechRequest", SpeechIn),
        ("CreateImageRequest", ImageIn),
        ("CreateImageEditRequest", ImageEditIn),
        ("CreateVectorStoreRequest", VectorStoreIn),
        ("UpdateVectorStoreRequest", VectorStoreChange),
        ("VectorStoreSearchRequest", VectorStoreSearchIn),
        ("CreateVectorStoreFileRequest", VectorStoreFileIn),
        ("CreateVectorStoreFileBatchRequest", FileBatchIn),
    ],
)
def test_no_field_that_openai_has_is_a_stranger(published: str, body: type[Schema]) -> None:
    known = {field.alias or name for name, field in body.model_fields.items()}
    files = {"file", "image", "mask"}  # parts of a form beside its fields
    assert not fields_of(published) - known - files


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        (
            "/chat/completions",
            {
                "verbosity": "medium",
                "prediction": {"type": "content", "content": "Hello there"},
                "prompt_cache_retention": "24h",
                "prompt_cache_options": {"mode": "implicit", "ttl": "30m"},
                "safety_identifier": "x",
                "prompt_cache_key": "y",
                "service_tier": "flex",
                "metadata": {"a": "b"},
                "store": True,
            },
        ),
        (
            "/chat/completions",
            dict.fromkeys(
                (
                    *("audio", "function_call", "functions", "moderation", "prediction"),
                    *("reasoning_effort", "verbosity", "web_search_options", "tools", "stop"),
                )
            ),
        ),
        (
            "/chat/completions",
            {
                "messages": [
                    HELLO,
                    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "Why?", "prompt_cache_breakpoint": {}},
                        ],
                    },
                ]
            },
        ),
        ("/chat/completions", {"top_k": -1, "stream_options": {"include_usage": None}}),
        ("/responses", {"top_k": -1}),
        (
            "/chat/completions",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        ),
        (
            "/responses",
            {
                "text": {"verbosity": "medium"},
                "reasoning": {"effort": None, "summary": "auto", "context": "auto"},
                "context_management": None,
                "moderation": None,
                "prompt_cache_options": {"mode": "explicit"},
            },
        ),
        (
            "/messages",
            {
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "high"},
                "cache_control": {"type": "ephemeral"},
                "mcp_servers": [],
                "container": None,
                "context_management": None,
                "inference_geo": None,
            },
        ),
    ],
    ids=str,
)
def test_what_changes_nothing_is_taken(caller: Caller, path: str, changes: dict[str, Any]) -> None:
    response = caller.post(path, BODIES[path] | changes)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("path", "changes", "param", "words"),
    [
        ("/chat/completions", {"reasoning_effort": "low"}, "reasoning_effort", "its own"),
        ("/chat/completions", {"verbosity": "low"}, "verbosity", "its own"),
        ("/chat/completions", {"functions": [{"name": "f"}]}, "functions", "tools"),
        ("/chat/completions", {"audio": {"voice": "x"}}, "audio", "speaks"),
        ("/chat/completions", {"stop": 5}, "stop", "string"),
        ("/chat/completions", {"metadata": {"a": "x" * 513}}, "metadata.a", "512"),
        (
            "/chat/completions",
            {"metadata": dict.fromkeys(map(str, range(17)), "")},
            "metadata",
            "16",
        ),
        ("/responses", {"metadata": {"a": "x" * 513}}, "metadata.a", "512"),
        ("/chat/completions", {"stop": ["a", 5]}, "stop.1", "string"),
        ("/chat/completions", {"tool_choice": "always"}, "tool_choice", "required"),
        (
            "/chat/completions",
            {"tool_choice": {"type": "allowed_tools"}},
            "tool_choice.type",
            "function",
        ),
        (
            "/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, PICTURE]}]},
            "messages",
            "reads texts only",
        ),
        (
            "/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages.0.content.0",
            "sound",
        ),
        (
            "/chat/completions",
            {"messages": [{"role": "user", "content": 7}]},
            "messages.0.content",
            "string",
        ),
        ("/responses", {"reasoning": {"effort": "low"}}, "reasoning.effort", "its own"),
        ("/responses", {"text": {"verbosity": "low"}}, "text.verbosity", "its own"),
        ("/responses", {"conversation": "conv_1"}, "conversation", "previous_response_id"),
        ("/responses", {"tools": [{"type": "web_search"}]}, "tools.0", "functions"),
        (
            "/responses",
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input.0.content.0",
            "send the image itself",
        ),
        ("/messages", {"output_config": {"effort": "low"}}, "output_config.effort", "its own"),
        (
            "/messages",
            {"messages": [{"role": "user", "content": [{"type": "document"}]}]},
            "messages.0.content.0",
            "reads documents",
        ),
        ("/messages", {"inference_geo": "us"}, "inference_geo", "told"),
        ("/embeddings", {"input": 5}, "input", "string"),
        ("/embeddings", {"input": []}, "input", "at least 1"),
        ("/embeddings", {"input": ["x"] * 2049}, "input", "2048"),
        ("/embeddings", {"input": [1, "x"]}, "input.1", "integer"),
        ("/completions", {"prompt": 5}, "prompt", "string"),
        ("/completions", {"prompt": ["x"] * 129}, "prompt", "128"),
        ("/completions", {"prompt": [[1], ["x"]]}, "prompt.1.0", "integer"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(
    caller: Caller, path: str, changes: dict[str, Any], param: str, words: str
) -> None:
    response = caller.post(path, BODIES[path] | changes)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["param"] == param
    assert words in error["message"]
    assert error["message"].startswith(param)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": "", "refusal": "I will not."}, "I will not."),
        ({"content": "Yes.", "refusal": None}, "Yes."),
        ({"content": None, "reasoning_content": "Let me think."}, ""),
    ],
)
def test_an_assistants_message_comes_back_as_it_was_told(
    caller: Caller, message: dict[str, Any], text: str
) -> None:
    messages = [HELLO, {"role": "assistant", **message}, {"role": "user", "content": "Why?"}]
    assert caller.post("/chat/completions", {**CHAT, "messages": messages}).status_code == 200
    assert ChatCompletionIn(model="m", messages=messages).messages[1].text == text


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_that_says_nothing_is_refused(caller: Caller, role: str) -> None:
    said = {"refusal": "no"} if role == "user" else {"tool_calls": []}
    messages = [HELLO, {"role": role, "content": None, **said}]
    assert caller.post("/chat/completions", {**CHAT, "messages": messages}).status_code == 400


def test_a_format_without_a_schema_is_any_object(caller: Caller) -> None:
    format_ = {"type": "json_schema", "json_schema": {"name": "a"}}
    body = {**CHAT, "model": "endless", "max_tokens": 3, "response_format": format_}
    said = caller.post("/chat/completions", body).json()
    assert said["choices"][0]["message"]["content"].lstrip().startswith("{")


def test_an_answer_in_anthropics_shape_follows_a_schema(caller: Caller) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}
    format_ = {"type": "json_schema", "schema": schema}
    body = {**MESSAGE, "model": "endless", "max_tokens": 60, "output_config": {"format": format_}}
    said = caller.post("/messages", body).json()
    assert said["content"][0]["text"].replace(" ", "").replace("\n", "") == '{"n":7}'


def test_calls_of_a_strict_tool_follow_its_schema_there_too(caller: Caller) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}
    tool = {"name": "lamp", "input_schema": schema, "strict": True, "eager_input_streaming": True}
    body = {"model": "caller", "max_tokens": 200, "messages": [HELLO], "tools": [tool]}
    said = caller.post("/messages", {**body, "tool_choice": {"type": "any"}}).json()
    assert {block["input"]["n"] for block in said["content"] if block["type"] == "tool_use"} == {7}
