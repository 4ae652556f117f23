"""/v1/responses with OpenAI's own client, unmodified, and event by event."""

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.chat.api_caller import Caller
from tests.openai_description import check, needs_description

SETTINGS: dict[str, Any] = {
    "model": "endless",
    "input": "Hello",
    "max_output_tokens": 30,
    "seed": 5,
}
LAMP: dict[str, Any] = {
    "type": "function",
    "name": "lamp",
    "description": "Switches a lamp.",
    "parameters": {
        "type": "object",
        "properties": {"is_on": {"type": "boolean"}},
        "required": ["is_on"],
        "additionalProperties": False,
    },
    "strict": True,
}
FORCED: dict[str, Any] = {
    "model": "caller",
    "tools": [LAMP],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_output_tokens": 300,
}
CITY: dict[str, Any] = {"enum": [{"city": "Oslo"}, {"city": "Rome"}]}
SHAPES: list[dict[str, Any]] = [
    {},
    FORCED,
    {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    {"text": {"format": {"type": "json_schema", "name": "city", "schema": CITY}}},
    {"instructions": "Be short.", "metadata": {"a": "b"}, "store": False},
]


def create(client: openai.OpenAI, **asked: Any) -> Any:
    settings = {**SETTINGS, **asked}
    extra = {"seed": settings.pop("seed")}
    return client.responses.create(extra_body=extra, **settings)


@needs_description
@pytest.mark.parametrize("changes", SHAPES, ids=lambda changes: ",".join(changes) or "plain")
def test_a_response_is_as_published(caller: Caller, changes: dict[str, Any]) -> None:
    body = caller.post("/responses", {**SETTINGS, **changes}).json()
    check(body, "Response")
    assert set(body["usage"]["input_tokens_details"]) == {"cached_tokens", "cache_write_tokens"}
    assert body["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}


@needs_description
@pytest.mark.parametrize("changes", SHAPES, ids=lambda changes: ",".join(changes) or "plain")
def test_every_event_is_as_published(caller: Caller, changes: dict[str, Any]) -> None:
    frames = caller.stream("/responses", {**SETTINGS, **changes})
    for name, event in frames:
        assert name == event["type"]
        check(event, "ResponseStreamEvent")
    assert [event["sequence_number"] for _, event in frames] == list(range(len(frames)))


def test_the_events_build_up_the_response(caller: Caller) -> None:
    events = [event for _, event in caller.stream("/responses", SETTINGS)]
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert set(kinds[4:-4]) == {"output_text.delta"}
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]
    assert events[0]["response"]["status"] == "in_progress"
    assert events[0]["response"]["output"] == []
    text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    [message] = events[-1]["response"]["output"]
    assert message["content"][0]["text"] == text == events[-4]["text"]
    assert {event["item_id"] for event in events if "item_id" in event} == {message["id"]}
    whole = caller.post("/responses", SETTINGS).json()
    assert whole["output"][0]["content"][0]["text"] == text
    assert events[-1]["response"]["usage"]["output_tokens"] == 30 == whole["usage"]["output_tokens"]


def test_a_cut_answer_is_incomplete_and_a_whole_one_complete(client: openai.OpenAI) -> None:
    cut = create(client)
    assert cut.status == "incomplete"
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert cut.output[0].status == "incomplete"
    wanted = {"type": "json_schema", "name": "city", "schema": CITY}
    whole = create(client, text={"format": wanted}, max_output_tokens=100)
    assert whole.status == "completed"
    assert whole.incomplete_details is None
    assert json.loads(whole.output_text) in CITY["enum"]


def test_the_client_reads_the_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model="endless", input="Hello", max_output_tokens=9) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    assert text


def test_a_response_is_kept_until_it_is_deleted(client: openai.OpenAI, stranger: Caller) -> None:
    made = create(client)
    kept = client.responses.retrieve(made.id)
    assert kept.output_text == made.output_text
    assert kept.usage == made.usage
    for response in (
        stranger.get(f"/responses/{made.id}"),
        stranger.delete(f"/responses/{made.id}"),
        stranger.get(f"/responses/{made.id}/input_items"),
    ):
        assert response.status_code == 404
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_anothers_id_is_answered_as_a_missing_one(
    client: openai.OpenAI, caller: Caller, stranger: Caller
) -> None:
    foreign, missing, nonsense = create(client).id, f"resp_{'0' * 32}", "resp_nonsense"
    answers = []
    for id_ in (foreign, missing, nonsense):
        found = stranger.get(f"/responses/{id_}")
        gone_on = stranger.post("/responses", {**SETTINGS, "previous_response_id": id_})
        answers.append([(r.status_code, r.text.replace(id_, "ID")) for r in (found, gone_on)])
    assert answers[0] == answers[1] == answers[2]
    assert [status for status, _ in answers[0]] == [404, 404]
    assert caller.get(f"/responses/{foreign}").status_code == 200


def test_what_is_not_to_be_stored_is_not(client: openai.OpenAI) -> None:
    made = create(client, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError) as caught:
        create(client, previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


def test_a_response_goes_on_from_another(client: openai.OpenAI, caller: Caller) -> None:
    """The model reads what it would read if all of it were sent."""
    first = create(client, instructions="Be short.")
    second = create(client, input="And then?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    third = create(client, input="At last?", previous_response_id=second.id)
    items: list[Any] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "And then?"},
    ]
    sent = create(client, input=items)
    assert sent.output_text == second.output_text
    assert sent.usage.input_tokens == second.usage.input_tokens, "instructions are not handed on"
    assert third.usage.input_tokens > second.usage.input_tokens + second.usage.output_tokens
    [asked] = caller.get(f"/responses/{second.id}/input_items").json()["data"]
    assert asked["content"] == [{"type": "input_text", "text": "And then?"}]
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        create(client, previous_response_id=third.id)


def test_an_item_stands_for_what_it_refers_to(
    client: openai.OpenAI, caller: Caller, stranger: Caller
) -> None:
    first = create(client)
    [asked] = caller.get(f"/responses/{first.id}/input_items").json()["data"]
    references: list[Any] = [
        {"type": "item_reference", "id": asked["id"]},
        {"type": None, "id": first.output[0].id},
        {"type": None, "role": "user", "content": "And then?"},
    ]
    second = create(client, input=references)
    gone_on = create(client, input="And then?", previous_response_id=first.id)
    assert second.output_text == gone_on.output_text
    kept = caller.get(f"/responses/{second.id}/input_items?order=asc").json()["data"]
    assert [item["id"] for item in kept[:2]] == [asked["id"], first.output[0].id]
    counted = caller.post("/responses/input_tokens", {**SETTINGS, "input": references})
    assert counted.json()["input_tokens"] == second.usage.input_tokens
    missing = {"type": "item_reference", "id": f"msg_{'0' * 44}"}
    nonsense = {"type": "item_reference", "id": "x"}
    for who, item in ((stranger, references[1]), (caller, missing), (caller, nonsense)):
        refused = who.post("/responses", {**SETTINGS, "input": [item, references[2]]})
        assert refused.status_code == 404
        assert refused.json()["error"]["param"] == "input"
    client.responses.delete(first.id)
    assert caller.post("/responses", {**SETTINGS, "input": references}).status_code == 404


@needs_description
def test_input_items_are_listed_by_the_page(client: openai.OpenAI, caller: Caller) -> None:
    items: list[Any] = [
        {"role": "developer", "content": "Be short."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "assistant", "content": "Hm."},
        {"type": "function_call", "call_id": "c1", "name": "lamp", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
    ]
    made = create(client, input=items)
    path = f"/responses/{made.id}/input_items"
    listed = caller.get(f"{path}?order=asc").json()
    check(listed, "ResponseItemList")
    assert [item["type"] for item in listed["data"]] == [
        "message",
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert not listed["has_more"]
    first = caller.get(f"{path}?limit=4").json()
    assert first["has_more"]
    second = caller.get(f"{path}?limit=4&after={first['last_id']}").json()
    assert not second["has_more"]
    assert [*first["data"], *second["data"]] == list(reversed(listed["data"]))
    by_client = list(client.responses.input_items.list(made.id, limit=2))
    assert len(by_client) == 6


def test_a_tool_is_called_and_its_result_goes_back(client: openai.OpenAI) -> None:
    made = create(client, **FORCED)
    assert made.status == "completed"
    [call] = made.output
    assert call.type == "function_call"
    assert call.name == "lamp"
    assert set(json.loads(call.arguments)) == {"is_on"}
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "It is on."}
    asked = {"model": "caller", "tools": [LAMP], "max_output_tokens": 20}
    again = create(client, input=[result], previous_response_id=made.id, **asked)
    said = [{"role": "user", "content": "Hello"}, call.model_dump(exclude_none=True), result]
    sent = create(client, input=said, **asked)
    assert again.usage.input_tokens == sent.usage.input_tokens
    assert again.output_text == sent.output_text


def test_a_streamed_call(client: openai.OpenAI) -> None:
    settings = {**SETTINGS, **FORCED}
    extra = {"seed": settings.pop("seed")}
    events = list(client.responses.create(stream=True, extra_body=extra, **settings))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert events[3].delta == events[4].arguments == events[5].item.arguments
    assert events[2].item.arguments == ""


def test_log_probabilities_come_with_the_text(client: openai.OpenAI) -> None:
    made = create(client, include=["message.output_text.logprobs"], top_logprobs=3)
    rated = made.output[0].content[0].logprobs
    assert len(rated) == 30
    assert all(len(token.top_logprobs) == 3 for token in rated)
    assert "".join(token.token for token in rated[:3])


def test_a_stream_can_be_gone_on_from_as_soon_as_it_ends(caller: Caller) -> None:
    *_, (_, last) = caller.stream("/responses", SETTINGS)
    asked = {**SETTINGS, "previous_response_id": last["response"]["id"]}
    assert caller.post("/responses", asked).status_code == 200
    assert caller.get(f"/responses/{last['response']['id']}").json() == last["response"]


def test_what_no_database_stores_is_kept_as_what_it_can(client: openai.OpenAI) -> None:
    made = create(client, input="zero \x00 byte")
    [item] = list(client.responses.input_items.list(made.id))
    assert item.content[0].text == "zero \ufffd byte"  # type: ignore[union-attr]


def test_half_a_character_breaks_no_stream(caller: Caller) -> None:
    *_, (name, last) = caller.stream("/responses", {**SETTINGS, "metadata": {"a": "\ud800"}})
    assert name == "response.incomplete"
    assert last["response"]["metadata"] == {"a": "\ufffd"}


def test_output_sent_back_as_it_came_is_understood(client: openai.OpenAI) -> None:
    for asked in ({}, FORCED):
        made = create(client, **asked)
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "done"}
            for item in made.output
            if item.type == "function_call"
        ]
        again = [{"role": "user", "content": "Hello"}, *made.output, *results]
        gone_on = create(client, **{**asked, "input": again})
        assert gone_on.usage.input_tokens > made.usage.input_tokens


class Lamp(BaseModel):
    is_on: bool


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the client's, of its own type
@pytest.mark.parametrize("by_alias", [False, True])
def test_output_sent_back_as_the_client_dumps_it_is_understood(
    client: openai.OpenAI, by_alias: bool
) -> None:
    tools: list[Any] = [openai.pydantic_function_tool(Lamp, name="lamp")]
    called: Any = client.responses.parse(
        model="caller",
        input="Hello",
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
    )
    said: Any = client.responses.parse(model="caller", input="Hello", text_format=Lamp)
    assert isinstance(said.output_parsed, Lamp)
    result = {
        "type": "function_call_output",
        "call_id": called.output[0].call_id,
        "output": "It is on.",
        **dict.fromkeys(("id", "status", "name", "namespace", "caller")),
    }
    dumped = [item.model_dump(by_alias=by_alias) for item in (*called.output, *said.output)]
    assert "parsed_arguments" in dumped[0]
    made = create(
        client, input=[dumped[0], result, *dumped[1:], {"role": "user", "content": "So?"}]
    )
    assert made.output_text


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", "model"),
        ({"input": ""}, 400, "invalid_value", "input"),
        ({"input": []}, 400, "invalid_value", "input"),
        ({"input": [{"role": "wizard", "content": "x"}]}, 400, "invalid_value", "input.0.role"),
        ({"input": [{"type": "computer_call"}]}, 400, "invalid_value", "input.0"),
        ({"input": [1]}, 400, "invalid_value", "input.0"),
        ({"input": "half \ud800"}, 400, "invalid_value", "input"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            400,
            "invalid_value",
            "input",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            400,
            "invalid_value",
            None,
        ),
        ({"input": "word " * 2000}, 400, "context_length_exceeded", "input"),
        ({"temperature": 9.5}, 400, "invalid_value", "temperature"),
        ({"max_output_tokens": 0}, 400, "invalid_value", "max_output_tokens"),
        ({"tools": [{"type": "web_search"}]}, 400, "invalid_value", None),
        ({"tools": [LAMP, LAMP]}, 400, "invalid_value", "tools"),
        ({"tool_choice": "required"}, 400, "invalid_value", "tool_choice"),
        ({"tools": [LAMP], "tool_choice": "required"}, 400, "invalid_parameter", "tool_choice"),
        ({"text": {"format": {"type": "json_schema"}}}, 400, "invalid_value", "text.format"),
        (
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "nope"}}}},
            400,
            "invalid_parameter",
            "text.format",
        ),
        ({"background": True}, 400, "invalid_value", "background"),
        ({"reasoning": {"effort": "high"}}, 400, "invalid_parameter", "reasoning.effort"),
        ({"conversation": "conv_1"}, 400, "invalid_value", "conversation"),
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
    response = caller.post("/responses", {**SETTINGS, "stream": stream, **changes})
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert param is None or error["param"] == param, error


def test_what_would_be_read_is_counted_and_costs_no_request(
    client: openai.OpenAI, caller: Caller
) -> None:
    first = client.responses.create(model="short", input="Hello", max_output_tokens=3)
    asked: dict[str, Any] = {"input": "Again", "previous_response_id": first.id}
    counted = caller.post("/responses/input_tokens", {"model": "short", **asked})
    assert "x-ratelimit-limit-requests" not in counted.headers
    assert counted.json()["object"] == "response.input_tokens"
    second = client.responses.create(model="short", max_output_tokens=3, **asked)
    assert counted.json()["input_tokens"] == second.usage.input_tokens
    assert second.usage.input_tokens > first.usage.input_tokens


def test_nothing_is_in_the_background_to_be_cancelled(client: openai.OpenAI) -> None:
    kept = client.responses.create(model="short", input="Hello", max_output_tokens=3)
    with pytest.raises(openai.BadRequestError, match="background"):
        client.responses.cancel(kept.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel("resp_of_nobody")
