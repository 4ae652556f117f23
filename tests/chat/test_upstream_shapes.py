"""Models on other servers in the shapes of responses and of messages: thoughts, calls, failures."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.api_caller import Caller
from tests.openai_description import DESCRIPTION, check
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, chunk, events, status, texts

RESPONSE: dict[str, Any] = {"model": "far", "input": "Hello"}
MESSAGE: dict[str, Any] = {
    "model": "far",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 99,
}
CALL = {"index": 0, "id": "c1", "function": {"name": "lamp", "arguments": '{"is_on": true}'}}
ALL = events(
    chunk(reasoning_content="Let me "),
    chunk(reasoning_content="think."),
    *texts("Well, ", "yes.")[:2],
    chunk(tool_calls=[CALL]),
    *texts("", reason="tool_calls")[1:],
)
LAMP: dict[str, Any] = {"name": "lamp", "description": "", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url},claude=anthropic+{server.url}"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far") as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def caller(site: Site) -> Caller:
    return Caller.signed_up(site)


@pytest.fixture(autouse=True)
def _forget(server: UpstreamServer) -> None:
    server.asked.clear()


def test_a_response_of_thoughts_text_and_a_call(caller: Caller, server: UpstreamServer) -> None:
    server.answers = [ALL]
    asked = {**RESPONSE, "tools": [{"type": "function", **LAMP}]}
    body = caller.post("/responses", asked).json()
    frames = [event for _, event in caller.stream("/responses", asked)]
    if DESCRIPTION.exists():
        check(body, "Response")
        for event in frames:
            check(event, "ResponseStreamEvent")
    reasoning, message, call = body["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "Let me think."}]
    assert reasoning["summary"] == []
    assert message["content"][0]["text"] == "Well, yes."
    assert (call["name"], call["arguments"]) == ("lamp", '{"is_on": true}')
    thought = [e["delta"] for e in frames if e["type"] == "response.reasoning_text.delta"]
    assert "".join(thought) == "Let me think."
    added = [e for e in frames if e["type"] == "response.output_item.added"]
    assert [e["output_index"] for e in added] == [0, 1, 2]
    assert [e["item"]["type"] for e in added] == ["reasoning", "message", "function_call"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "on"}
    server.answers = [events(*texts("Done."))]
    again = {**asked, "input": [result], "previous_response_id": body["id"]}
    assert caller.post("/responses", again).status_code == 200
    shown = server.asked[-1].body["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]
    assert "think" not in json.dumps(shown), "models are not shown their old thoughts"
    assert shown[1]["content"] == "Well, yes."
    assert shown[1]["tool_calls"][0]["id"] == shown[2]["tool_call_id"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", shown[2]["tool_call_id"]), "or Mistral would refuse it"


def test_a_message_of_thoughts_text_and_a_call(caller: Caller, server: UpstreamServer) -> None:
    server.answers = [ALL]
    tool = {"name": "lamp", "description": "", "input_schema": {"type": "object"}}
    asked = {**MESSAGE, "tools": [tool], "stop_sequences": ["END"]}
    message = caller.post("/messages", asked).json()
    assert server.asked[0].body["stop"] == ["END"]
    thinking, text, use = message["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "Let me think.")
    assert text == {"type": "text", "text": "Well, yes."}
    assert (use["type"], use["input"]) == ("tool_use", {"is_on": True})
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["cache_read_input_tokens"] == 4
    assert message["usage"]["input_tokens"] == 7
    kinds = [
        event["content_block"]["type"]
        for name, event in caller.stream("/messages", asked)
        if name == "content_block_start"
    ]
    assert kinds == ["thinking", "text", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "on"}
    server.answers = [events(*texts("Done."))]
    said = [
        *MESSAGE["messages"],
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [result]},
    ]
    assert caller.post("/messages", {**asked, "messages": said}).status_code == 200
    shown = server.asked[-1].body["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]
    assert "think" not in json.dumps(shown)


def _ends(caller: Caller, model: str) -> tuple[str, str, str]:
    """How an answer ended, in the shapes of a chat, of a response and of a message."""
    hello = MESSAGE["messages"]
    chat = caller.post("/chat/completions", {"model": model, "messages": hello}).json()
    response = caller.post("/responses", {"model": model, "input": "Hello"}).json()
    message = caller.post("/messages", {**MESSAGE, "model": model}).json()
    if DESCRIPTION.exists():
        check(chat, "CreateChatCompletionResponse")
        check(response, "Response")
    cut = (response["incomplete_details"] or {}).get("reason")
    told = f"{response['status']} {cut}" if cut else response["status"]
    return chat["choices"][0]["finish_reason"], told, message["stop_reason"]


FILTERED = ("content_filter", "incomplete content_filter", "refusal")
CUT = ("length", "incomplete max_output_tokens", "max_tokens")


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        ("Well", "content_filter", FILTERED),
        ("", "content_filter", FILTERED),
        ("Well", "length", CUT),
        ("Well", "stop", ("stop", "completed", "end_turn")),
    ],
)
def test_how_an_answer_ended_is_told(
    caller: Caller, server: UpstreamServer, text: str, reason: str, expected: tuple[str, str, str]
) -> None:
    server.answers = [events(*texts(text, reason=reason))]
    assert _ends(caller, "far") == expected
    *_, (_, last), _ = caller.stream("/chat/completions", {**MESSAGE, "max_tokens": 9})
    assert last["choices"][0]["finish_reason"] == expected[0]


def _of_anthropic(text: str, reason: str, stop: str | None = None) -> Any:
    pieces: list[Any] = [{"type": "content_block_start", "content_block": {"type": "text"}}]
    pieces += [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}]
    return events(
        *(pieces if text else []),
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": stop}},
        {"type": "message_stop"},
    )


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        ("Well", "refusal", FILTERED),
        ("", "refusal", FILTERED),
        ("Well", "max_tokens", CUT),
        ("Well", "model_context_window_exceeded", CUT),
    ],
)
def test_how_an_answer_ended_is_told_by_anthropics_servers(
    caller: Caller, server: UpstreamServer, text: str, reason: str, expected: tuple[str, str, str]
) -> None:
    server.answers = [_of_anthropic(text, reason)]
    assert _ends(caller, "claude") == expected


@pytest.mark.parametrize(("said", "told"), [("END", "END"), ("never asked", None)])
def test_a_stop_sequence_is_named(
    caller: Caller, server: UpstreamServer, said: str, told: str | None
) -> None:
    server.answers = [_of_anthropic("Well", "stop_sequence", said)]
    asked = {**MESSAGE, "model": "claude", "stop_sequences": ["END"]}
    message = caller.post("/messages", asked).json()
    reason = "stop_sequence" if told else "end_turn"
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, told)


def test_a_server_that_breaks_off_is_an_event(caller: Caller, server: UpstreamServer) -> None:
    server.answers = [events(chunk(content="Well"), is_cut=True)]
    *_, (name, last) = caller.stream("/responses", RESPONSE)
    assert name == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"]["code"] == "server_error"
    assert last["response"]["output"][0]["content"][0]["text"] == "Well"
    if DESCRIPTION.exists():
        check(last, "ResponseStreamEvent")
    kept = caller.get(f"/responses/{last['response']['id']}").json()
    assert kept["status"] == "failed"
    *_, (name, last) = caller.stream("/messages", MESSAGE)
    assert name == last["type"] == "error"
    assert last["error"]["message"]


@pytest.mark.parametrize(("path", "body"), [("/responses", RESPONSE), ("/messages", MESSAGE)])
@pytest.mark.parametrize("stream", [False, True])
def test_what_fails_at_once_is_a_status(
    caller: Caller, server: UpstreamServer, path: str, body: dict[str, Any], stream: bool
) -> None:
    server.answers = [status(400, {"error": {"message": "No such thing."}})]
    response = caller.post(path, {**body, "stream": stream})
    assert response.status_code >= 400
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/completions", {"model": "far", "prompt": "x"}),
        ("/tokenize", {"model": "far", "text": "x"}),
        ("/messages/count_tokens", {"model": "far", "messages": MESSAGE["messages"]}),
        ("/responses", {**RESPONSE, "include": ["message.output_text.logprobs"]}),
    ],
)
def test_what_another_server_does_not_tell(caller: Caller, path: str, body: dict[str, Any]) -> None:
    response = caller.post(path, body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_parameter"
