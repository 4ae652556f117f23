"""Every family's calls and thinking, for any chunking; what is no call is seen whole."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import AnswerParser, Call, Reasoning, Segment, Text
from tests.inference.segments import joined

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "where": {"type": "object"},
            },
        },
    },
}
CITY = Call("get_weather", '{"city": "Paris"}')
NOW = Call("now", "{}")
TOOLS = [WEATHER, {"type": "function", "function": {"name": "now"}}]


@dataclass(frozen=True)
class Sample:
    """What a family's chat template holds, how its prompts end, and an answer of such a model."""

    template: str
    tail: str
    answer: str
    expected: tuple[Segment, ...]


SAMPLES = {
    "hermes": Sample(
        "<tool_call>",
        "<|im_start|>assistant\n",
        "<think>\nHm <b>x</b>\n</think>\n\nLet me see.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        (Reasoning("Hm <b>x</b>\n"), Text("Let me see."), CITY, NOW),
    ),
    "qwen coder": Sample(
        "<tool_call>\n<function=",
        "<|im_start|>assistant\n",
        "I look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n"
        '<parameter=days>\n3\n</parameter>\n<parameter=where>\n{"a": [1]}\n</parameter>\n'
        "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        (
            Text("I look."),
            Call("get_weather", '{"city": "12", "days": 3, "where": {"a": [1]}}'),
            NOW,
        ),
    ),
    "llama": Sample(
        "<|python_tag|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        '{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "now", "parameters": {}}',
        (CITY, NOW),
    ),
    "llama with its tag": Sample(
        "<|python_tag|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        '<|python_tag|>{"type": "function", "name": "now", "parameters": {}}<|eom_id|>',
        (NOW,),
    ),
    "mistral": Sample(
        "[TOOL_CALLS]",
        "[INST]Hello[/INST]",
        'Sure.[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]now[CALL_ID]a1[ARGS]{}',
        (Text("Sure."), CITY, NOW),
    ),
    "mistral before version 11": Sample(
        "[TOOL_CALLS]",
        "[TOOL_RESULTS]...[/TOOL_RESULTS]",
        '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}},'
        ' {"name": "now", "arguments": {}}]',
        (CITY, NOW),
    ),
    "deepseek v3.1": Sample(
        "<｜tool▁calls▁begin｜>",
        "<｜Assistant｜>",
        "<think>r</think>Hi<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (Reasoning("r"), Text("Hi"), CITY, NOW),
    ),
    "deepseek r1": Sample(
        "<｜tool▁calls▁begin｜>",
        "<｜Assistant｜><think>\n",
        "hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function'
        "<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (Reasoning("hm"), CITY, NOW),
    ),
    "gpt-oss": Sample(
        "<|channel|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "I look.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
        '<|constrain|>json<|message|>{"city": "Paris"}',
        (Reasoning("think"), Text("I look."), CITY),
    ),
    "gpt-oss, the recipient first": Sample(
        "<|channel|>",
        "<|start|>assistant",
        " to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
        (NOW,),
    ),
    "gpt-oss, an answer": Sample(
        "<|channel|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
        (Reasoning("so"), Text("Yes.")),
    ),
}


def parse(
    sample: Sample, size: int = 10**9, answer: str | None = None, tools: list[Any] = TOOLS
) -> list[Segment]:
    text = sample.answer if answer is None else answer
    parser = AnswerParser(sample.template, sample.tail, tools)
    found: list[Segment] = []
    for start in range(0, len(text), size):
        found += parser.feed(text[start : start + size])
    return joined(found + parser.finish())


@pytest.mark.parametrize("name", SAMPLES)
def test_calls_and_thinking_for_any_chunking(name: str) -> None:
    for size in (10**9, 1, 2, 3, 7):
        assert tuple(parse(SAMPLES[name], size)) == SAMPLES[name].expected, size


@pytest.mark.parametrize("name", SAMPLES)
def test_where_no_tool_is_offered_a_call_is_text(name: str) -> None:
    whole = parse(SAMPLES[name], tools=[])
    assert not any(isinstance(segment, Call) for segment in whole)
    thought = [s for s in SAMPLES[name].expected if isinstance(s, Reasoning)]
    assert [s for s in whole if isinstance(s, Reasoning)] == thought
    text = "".join(s.text for s in whole if isinstance(s, Text))
    for expected in SAMPLES[name].expected:
        said = expected.name if isinstance(expected, Call) else expected.text
        assert isinstance(expected, Reasoning) or said in text
    for size in (1, 2, 3, 7):
        assert parse(SAMPLES[name], size, tools=[]) == whole, size


@pytest.mark.parametrize("name", SAMPLES)
def test_plain_words_stay_plain(name: str) -> None:
    sample = SAMPLES[name]
    tail = sample.tail.removesuffix("<think>\n")
    plain = Sample(sample.template, tail, "Just words, {braces} and <tags>.", ())
    assert parse(plain, 2) == [Text("Just words, {braces} and <tags>.")]


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_cut_or_damaged_answer_raises_nothing(name: str, data: st.DataObject) -> None:
    sample = SAMPLES[name]
    place = data.draw(st.integers(0, len(sample.answer)))
    rest = sample.answer[place + data.draw(st.integers(0, 9)) :] if data.draw(st.booleans()) else ""
    damaged = sample.answer[:place] + rest
    whole = parse(sample, answer=damaged)
    assert parse(sample, 1, damaged) == whole
    for segment in whole:
        if isinstance(segment, Call):
            assert isinstance(json.loads(segment.arguments), dict)


def test_what_is_no_call_is_seen_whole() -> None:
    for name, answer in {
        "hermes": "<tool_call>{broken</tool_call>",
        "mistral": "[TOOL_CALLS]get_weather[ARGS]{broken",
        "deepseek v3.1": "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{<｜tool▁call▁end｜>",
    }.items():
        assert parse(SAMPLES[name], answer=answer) == [Text(answer)]
    # An answer in JSON that happens to have a name; nobody offered a tool of that name.
    answer = '{"name": "Ada", "parameters": {}}'
    assert parse(SAMPLES["llama"], 3, answer) == [Text(answer)]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_that_json_cannot_write_are_no_arguments(name: str, number: str) -> None:
    for value in ('"Paris"', "\n3\n"):  # of the forms in JSON, and of the one in tags
        damaged = SAMPLES[name].answer.replace(value, value.replace(value.strip(), number))
        for segment in parse(SAMPLES[name], answer=damaged):
            if isinstance(segment, Call):
                assert number not in segment.arguments or f'"{number}"' in segment.arguments
                json.loads(segment.arguments, parse_constant=pytest.fail)


def test_a_call_with_such_a_number_is_text() -> None:
    for number in ("NaN", "1e999"):
        answer = f'<tool_call>{{"name": "now", "arguments": {{"x": {number}}}}}</tool_call>'
        assert parse(SAMPLES["hermes"], answer=answer) == [Text(answer)]
        answer = f'{{"name": "now", "parameters": {{"x": {number}}}}}'
        assert parse(SAMPLES["llama"], answer=answer) == [Text(answer)]


def test_bare_json_is_text_where_no_tools_are_offered() -> None:
    parser = AnswerParser("<|python_tag|>", SAMPLES["llama"].tail)
    answer = '{"name": "now", "parameters": {}}'
    shown = parser.feed(answer[:5])
    assert shown == [Text(answer[:5])], "and streams"
    assert parser.feed(answer[5:]) + parser.finish() == [Text(answer[5:])]


_OPTIONAL = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_STRINGS = {"Size": {"type": "string", "enum": ["1", "2"]}}
_DEEP: dict[str, Any] = {"type": "string"}
for _ in range(400):
    _DEEP = {"anyOf": [_DEEP]}


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        *((_OPTIONAL, text, text) for text in ("123", "true", '{"a": 1}', "[1]", "1.5", "Oslo")),
        (_OPTIONAL, "null", None),
        (_OPTIONAL, '"123"', "123"),
        ({"type": ["string", "null"]}, "123", "123"),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, "12", "12"),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, "true", True),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "12", 12),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "2.0", 2.0),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": ["1", 2, True]}, "1", "1"),
        ({"enum": ["1", 2, True]}, "2", 2),
        ({"enum": ["1", 2]}, "3", 3),
        ({"const": "null"}, "null", "null"),
        ({"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}], "default": None}, "2", "2"),
        ({"allOf": [{"$ref": "#/$defs/Size"}]}, "2", "2"),
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, "a dozen", "a dozen"),
        ({"type": [{}], "enum": 3, "anyOf": {}, "oneOf": [None]}, "12", 12),
        (_DEEP, "12", 12),
        ({}, "12", 12),
        (None, "12", 12),
    ],
)
def test_an_argument_in_tags_is_of_a_type_that_its_schema_takes(
    schema: Any, written: str, value: object
) -> None:
    """Text where the schema wants no number, but takes texts, beside null or listed ones."""
    parameters = {"type": "object", "properties": {"x": schema}, "$defs": _STRINGS}
    tool = {"type": "function", "function": {"name": "now", "parameters": parameters}}
    parser = AnswerParser("<tool_call> <function=", "<|im_start|>assistant\n", [tool])
    parameter = f"<parameter=x>\n{written}\n</parameter>"
    answer = f"<tool_call>\n<function=now>\n{parameter}\n</function>\n</tool_call>"
    (call,) = parser.feed(answer) + parser.finish()
    assert isinstance(call, Call)
    read = json.loads(call.arguments)["x"]
    assert (read, type(read)) == (value, type(value))
