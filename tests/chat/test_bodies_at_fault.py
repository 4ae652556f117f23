"""Bodies under /v1 that are JSON, and yet more than anything behind them could take."""

import json
from typing import Any

import pytest

from chat.openai_bodies import chat_message
from chat.openai_schemas import ChatCompletionIn
from inference import ChatTokenizer
from inference.builtin import MODEL_DIR
from tests.chat.api_caller import Caller

HELLO: dict[str, Any] = {"role": "user", "content": "Hello"}
MANY = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2000)}}


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def called(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    call = {"id": "c1", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "model": "caller",
        "max_tokens": 1,
        "messages": [HELLO, said, {"role": "tool", "tool_call_id": "c1", "content": "r"}],
    }


def item_called(arguments: str) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments}
    result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    return {"model": "caller", "max_output_tokens": 1, "input": [HELLO, call, result]}


def code_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("error", {}).get("code", "")


@pytest.mark.parametrize("text", ["[" * 100_000, nested(5000), nested(900), nested(65)], ids=len)
def test_arguments_that_go_too_deep_are_refused(caller: Caller, text: str) -> None:
    for path, body in (("/chat/completions", called(text)), ("/responses", item_called(text))):
        assert code_of(caller.post(path, body)) == (400, "invalid_value")


@pytest.mark.parametrize("text", [nested(64), '{"a": ', ""], ids=len)
def test_other_arguments_are_taken_as_they_come(caller: Caller, text: str) -> None:
    assert caller.post("/chat/completions", called(text)).status_code == 200


IN_TAGS = (
    "{% for m in messages %}{{ m.content }}{% for call in m.tool_calls or [] %}"
    "<{{ call.function.name }}>{% for name, value in call.function.arguments | items %}"
    "{{ name }}={{ value }}{% endfor %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "<f>r"),
        ("{}", "<f>r"),
        ('{"a": 1}', "<f>a=1r"),
        ("{bad", "<f>input={badr"),
        ("[1]", "<f>input=[1]r"),
        ("3", "<f>input=3r"),
    ],
)
def test_a_template_that_goes_through_arguments_always_can(text: str, shown: str) -> None:
    tokenizer = ChatTokenizer.load(MODEL_DIR, IN_TAGS)
    asked = ChatCompletionIn(**called(text)).messages
    ids = tokenizer.encode_chat([*map(chat_message, asked)])
    assert tokenizer.decode(list(ids)) == f"Hello{shown}"


@pytest.mark.parametrize("depth", [65, 700])
def test_an_input_that_goes_too_deep_is_refused(caller: Caller, depth: int) -> None:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": value}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "r"}
    messages = [
        HELLO,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    body = {"model": "caller", "max_tokens": 1, "messages": messages}
    assert code_of(caller.post("/messages", body)) == (400, "invalid_value")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400", "-1e400"])
def test_a_number_that_is_none_is_refused_wherever_it_stands(caller: Caller, number: str) -> None:
    part = {"type": "output_text", "text": "a", "annotations": [{"n": 42}]}
    said = {"role": "assistant", "content": [part]}
    thought = {"type": "reasoning", "summary": [42]}
    bodies = [
        ("/responses", {"model": "short", "input": [said, HELLO]}),
        ("/responses", {"model": "short", "input": [thought, HELLO]}),
        ("/chat/completions", {"model": "short", "messages": [HELLO], "top_p": 42}),
        ("/messages", {"model": "short", "messages": [HELLO], "max_tokens": 1, "top_p": 42}),
    ]
    for path, body in bodies:
        text = json.dumps(body).replace("42", number)
        assert code_of(caller.post(path, text)) == (400, "invalid_request")


def written_by(schema: dict[str, Any]) -> dict[str, Any]:
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return {"model": "caller", "messages": [HELLO], "response_format": format_, "max_tokens": 9}


def test_a_schema_of_too_much_is_refused(caller: Caller) -> None:
    response = caller.post("/chat/completions", written_by(MANY))
    assert code_of(response) == (400, "invalid_parameter")
    assert "more than 1000 properties" in response.text


def test_a_schema_that_cannot_be_followed_is_its_authors_fault(caller: Caller) -> None:
    body = written_by({"$ref": "#"})
    response = caller.post("/chat/completions", body)
    assert code_of(response) == (400, "invalid_parameter")
    assert "Parser" not in response.text
    assert "cannot follow its schema" in response.text
    errors = [data for _, data in caller.stream("/chat/completions", body) if "error" in data]
    assert [told["error"]["code"] for told in errors] == ["invalid_parameter"]
