"""Tool choice over /v1: whatever a random model would like to say, it calls as it was told."""

import json
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ParsedChatCompletionMessage
from pydantic import BaseModel

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


def tool(name: str, **values: list[Any]) -> Any:
    """A tool whose arguments are all required, each one of a few values."""
    parameters = {
        "type": "object",
        "properties": {key: {"enum": options} for key, options in values.items()},
        "required": list(values),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


WEATHER = tool("get_weather", city=["Oslo", "Rome"], days=[1, 2, 3])
LAMP = tool("lamp", is_on=[True, False])


def complete(client: openai.OpenAI, **settings: Any) -> ChatCompletion:
    settings = {"tools": [WEATHER, LAMP], "max_tokens": 400, "seed": 7} | settings
    made: ChatCompletion = client.chat.completions.create(
        model="caller", messages=HELLO, **settings
    )
    return made


def calls_of(completion: ChatCompletion) -> list[tuple[str, Any]]:
    (choice,) = completion.choices
    calls: list[Any] = choice.message.tool_calls or []
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        arguments = json.loads(call.function.arguments)
        wanted = {"get_weather": {"city", "days"}, "lamp": {"is_on"}}[call.function.name]
        assert set(arguments) == wanted
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


@pytest.mark.parametrize("seed", range(4))
def test_required_is_a_call_of_some_tool(client: openai.OpenAI, seed: int) -> None:
    completion = complete(
        client, tool_choice="required", parallel_tool_calls=False, seed=seed, temperature=1.5
    )
    assert len(calls_of(completion)) == 1
    assert completion.choices[0].finish_reason == "tool_calls"
    assert not completion.choices[0].message.content


def test_a_named_tool_is_the_one_that_is_called(client: openai.OpenAI) -> None:
    for name in ("lamp", "get_weather"):
        choice = {"type": "function", "function": {"name": name}}
        [(called, _)] = calls_of(complete(client, tool_choice=choice))
        assert called == name


def test_a_forced_call_streams(client: openai.OpenAI) -> None:
    settings: dict[str, Any] = {"tools": [LAMP], "tool_choice": "required", "seed": 3}
    settings |= {"parallel_tool_calls": False, "max_tokens": 200}
    whole = complete(client, **settings)
    chunks = client.chat.completions.create(model="caller", messages=HELLO, stream=True, **settings)
    choices = [chunk.choices[0] for chunk in chunks]
    [call] = [call for choice in choices for call in choice.delta.tool_calls or []]
    assert call.index == 0
    assert call.function is not None
    assert [(call.function.name, json.loads(call.function.arguments or ""))] == calls_of(whole)
    assert choices[-1].finish_reason == "tool_calls"


class Lamp(BaseModel):
    is_on: bool


class Done(BaseModel):
    done: bool


def parsed(client: openai.OpenAI, **settings: Any) -> ParsedChatCompletionMessage[Any]:
    made: Any = client.chat.completions.parse(
        model="caller", messages=HELLO, max_tokens=400, seed=3, **settings
    )
    message: ParsedChatCompletionMessage[Any] = made.choices[0].message
    return message


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the client's, of its own type
@pytest.mark.parametrize("is_dumped", [False, True])
def test_what_the_client_has_parsed_is_understood_when_it_comes_back(
    client: openai.OpenAI, is_dumped: bool
) -> None:
    tools: list[Any] = [openai.pydantic_function_tool(Lamp, name="lamp")]
    called = parsed(client, tools=tools, tool_choice="required", parallel_tool_calls=False)
    assert called.tool_calls
    assert isinstance(called.tool_calls[0].function.parsed_arguments, Lamp)
    said = parsed(client, response_format=Done)
    assert isinstance(said.parsed, Done)
    result = {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "It is on."}
    back: list[Any] = [m.model_dump() if is_dumped else m for m in (called, said)]
    messages = [*HELLO, back[0], result, back[1], *HELLO]
    again = client.chat.completions.create(model="caller", messages=messages, max_tokens=9)
    assert again.choices[0].message.content


def test_json_or_a_call(client: openai.OpenAI) -> None:
    schema = {"enum": [{"done": True}, {"done": False}]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    kinds = []
    for seed in range(12):
        completion = complete(
            client, tools=[LAMP], response_format=wanted, parallel_tool_calls=False, seed=seed
        )
        calls = calls_of(completion)
        text = completion.choices[0].message.content
        assert bool(calls) != bool(text)
        if text:
            assert json.loads(text) in schema["enum"]
        kinds.append(bool(calls))
    assert len(set(kinds)) == 2, "both happen"


def test_a_schema_of_a_tool_that_is_not_strict_refuses_nothing(client: openai.OpenAI) -> None:
    strict = {**LAMP, "function": {**LAMP["function"], "strict": True}}
    tags = {"type": "array", "uniqueItems": True}
    free: Any = {
        "type": "function",
        "function": {"name": "f", "parameters": {"properties": {"a": tags}}},
    }
    for wanted in ({"parallel_tool_calls": False}, {"tool_choice": "required"}):
        assert complete(client, tools=[strict, free], max_tokens=9, **wanted).choices


def test_strict_tools_leave_the_text_free(client: openai.OpenAI) -> None:
    strict = {**LAMP, "function": {**LAMP["function"], "strict": True}}
    completion = complete(client, tools=[strict], max_tokens=40)
    assert completion.choices[0].message.content
    assert "<tool_call>" not in (completion.choices[0].message.content or "")


def test_what_the_caller_says_of_a_tool_is_shown_to_the_model(client: openai.OpenAI) -> None:
    """All of it: a function without its parameters costs far fewer tokens."""
    bare = complete(
        client, tools=[{"type": "function", "function": {"name": "lamp"}}], max_tokens=1
    )
    full = complete(client, tools=[LAMP], max_tokens=1)
    said = {**LAMP, "function": {**LAMP["function"], "description": "Switches " + "a lamp " * 20}}
    described = complete(client, tools=[said], max_tokens=1)
    sizes = [c.usage.prompt_tokens for c in (bare, full, described) if c.usage]
    assert sizes[0] + 20 < sizes[1]
    assert sizes[1] + 40 < sizes[2]


def test_no_tools_where_none_is_the_choice(client: openai.OpenAI) -> None:
    assert complete(client, tool_choice="none", max_tokens=9).choices[0].message.content
