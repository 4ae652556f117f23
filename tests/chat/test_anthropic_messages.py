"""/v1/messages in Anthropic's shapes, as its published API describes them."""

import json
from typing import Any

import httpx2
import pytest

from tests.chat.api_caller import Caller
from tests.sites import Site

HELLO = [{"role": "user", "content": "Hello"}]
SETTINGS: dict[str, Any] = {"model": "endless", "messages": HELLO, "max_tokens": 30, "seed": 5}
LAMP: dict[str, Any] = {
    "name": "lamp",
    "description": "Switches a lamp.",
    "input_schema": {
        "type": "object",
        "properties": {"is_on": {"type": "boolean"}},
        "required": ["is_on"],
        "additionalProperties": False,
    },
}
FORCED: dict[str, Any] = {
    "model": "caller",
    "tools": [LAMP],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "max_tokens": 300,
}


def _message(caller: Caller, **asked: Any) -> Any:
    response = caller.post("/messages", {**SETTINGS, **asked})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_message(caller: Caller) -> None:
    message = _message(caller)
    assert message["id"].startswith("msg_")
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["model"] == "endless"
    assert message["stop_reason"] == "max_tokens"
    assert message["stop_sequence"] is None
    [block] = message["content"]
    assert set(block) == {"type", "text"}
    assert block["text"]
    assert message["usage"]["output_tokens"] == 30
    as_openai = caller.post(
        "/chat/completions",
        {"model": "endless", "messages": HELLO, "max_tokens": 30, "seed": 5, "temperature": 1},
    ).json()
    same = _message(caller, temperature=1)
    assert same["content"][0]["text"] == as_openai["choices"][0]["message"]["content"]
    usage = same["usage"]
    num_read = usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert num_read == as_openai["usage"]["prompt_tokens"]


def test_the_events_build_up_the_message(caller: Caller) -> None:
    frames = caller.stream("/messages", SETTINGS)
    assert all(name == event["type"] for name, event in frames)
    kinds = [name for name, _ in frames]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    start = frames[0][1]["message"]
    assert start["content"] == []
    assert start["stop_reason"] is None
    text = "".join(e["delta"]["text"] for name, e in frames if name == "content_block_delta")
    whole = _message(caller)
    assert text == whole["content"][0]["text"]
    end = frames[-2][1]
    assert end["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None}
    assert end["usage"]["output_tokens"] == 30
    counted = [
        usage["input_tokens"] + usage["cache_read_input_tokens"]
        for usage in (start["usage"], end["usage"], whole["usage"])
    ]
    assert len(set(counted)) == 1, "the prompt is counted before the first word"
    assert counted[0] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_sequence_is_named(caller: Caller, stream: bool) -> None:
    plain = _message(caller)["content"][0]["text"]
    stop = plain[8:10]
    asked = {**SETTINGS, "stop_sequences": ["never seen", stop]}
    if stream:
        frames = caller.stream("/messages", asked)
        told = frames[-2][1]["delta"]
        text = "".join(e["delta"]["text"] for name, e in frames if name == "content_block_delta")
    else:
        told = _message(caller, **asked)
        text = told["content"][0]["text"]
    assert (told["stop_reason"], told["stop_sequence"]) == ("stop_sequence", stop)
    assert text.strip() == plain[: plain.index(stop)].strip()


def test_a_system_prompt_is_read(caller: Caller) -> None:
    def num_read(**asked: Any) -> int:
        body = {"model": "endless", "messages": HELLO} | asked
        found: int = caller.post("/messages/count_tokens", body).json()["input_tokens"]
        return found

    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert num_read() < num_read(system="Be brief.") == num_read(system=blocks)
    usage = _message(caller, system="Be brief.")["usage"]
    counted = usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert counted == num_read(system="Be brief.")
    assert num_read(model="caller") < num_read(model="caller", tools=[LAMP])


def test_a_tool_is_used_and_its_result_goes_back(caller: Caller) -> None:
    message = _message(caller, **FORCED)
    assert message["stop_reason"] == "tool_use"
    [use] = message["content"]
    assert (use["type"], use["name"], set(use["input"])) == ("tool_use", "lamp", {"is_on"})
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "It is on."}
    text = {"type": "text", "text": "Thanks. And now?"}
    messages = [
        *HELLO,
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [result, text]},
    ]
    again = _message(caller, model="caller", tools=[LAMP], messages=messages)
    assert again["content"][0]["type"] == "text"


def test_a_tool_use_is_understood_as_anthropics_client_dumps_it(caller: Caller) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "lamp", "input": {}}
    dumped = {**use, "caller": None, "toolset_name": None}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "It is on."}
    said = [
        *HELLO,
        {"role": "assistant", "content": [dumped]},
        {"role": "user", "content": [result]},
    ]
    assert _message(caller, messages=said)["content"]


def test_a_named_tool_is_the_one_that_is_used(caller: Caller) -> None:
    choice = {"type": "tool", "name": "bell", "disable_parallel_tool_use": True}
    tools = [LAMP, {**LAMP, "name": "bell"}]
    [use] = _message(caller, **{**FORCED, "tools": tools, "tool_choice": choice})["content"]
    assert use["name"] == "bell"


def test_a_streamed_tool_use(caller: Caller) -> None:
    frames = caller.stream("/messages", {**SETTINGS, **FORCED})
    events = dict(frames)
    assert [name for name, _ in frames] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events["content_block_start"]["content_block"]["input"] == {}
    delta = events["content_block_delta"]["delta"]
    assert delta["type"] == "input_json_delta"
    assert set(json.loads(delta["partial_json"])) == {"is_on"}
    assert events["message_delta"]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("changes", "status", "kind", "words"),
    [
        ({"model": "gpt-9"}, 404, "not_found_error", "gpt-9"),
        ({"max_tokens": None}, 400, "invalid_request_error", "max_tokens"),
        ({"messages": []}, 400, "invalid_request_error", "messages"),
        ({"temperature": 1.5}, 400, "invalid_request_error", "temperature"),
        ({"messages": [{"role": "system", "content": "x"}]}, 400, "invalid_request_error", "role"),
        (
            {"messages": [*HELLO, {"role": "assistant", "content": "Well"}]},
            400,
            "invalid_request_error",
            "last",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}],
                    }
                ]
            },
            400,
            "invalid_request_error",
            "tool_use",
        ),
        ({"tools": [LAMP, LAMP]}, 400, "invalid_request_error", "tools"),
        ({"tool_choice": {"type": "any"}}, 400, "invalid_request_error", "tool_choice"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            400,
            "invalid_request_error",
            "thinking",
        ),
        (
            {"messages": [{"role": "user", "content": "word " * 2000}]},
            400,
            "invalid_request_error",
            "context_length_exceeded",
        ),
        ({"n": 2}, 400, "invalid_request_error", "n"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_have_anthropics_shape(
    caller: Caller, changes: dict[str, Any], status: int, kind: str, words: str, stream: bool
) -> None:
    body = {key: value for key, value in ({**SETTINGS, **changes}).items() if value is not None}
    response = caller.post("/messages", {**body, "stream": stream})
    assert response.status_code == status, response.text
    told = response.json()
    assert told["type"] == "error"
    assert told["error"]["type"] == kind
    assert words in told["error"]["message"]


def test_no_key_no_answer(chat_site: Site) -> None:
    assert httpx2.post(f"{chat_site.url}/v1/messages", json=SETTINGS).status_code == 401
