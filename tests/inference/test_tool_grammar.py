"""Under a grammar of tool calls, what a model draws is read back as the calls that were asked for."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import AnswerParser, Call, InvalidParameter, Reasoning, Segment, Text
from inference.grammar import json_schema_grammar
from inference.tool_grammar import behind_thinking, opens_thinking, tool_grammar
from tests.inference.drawing import GRAMMARS, TOKENIZER, drawn

ADDED = {token.content for token in TOKENIZER.get_added_tokens_decoder().values()}
TEMPLATE = "<tool_call> <think>"
MARKS = ("<tool_call>", "<think>", "</think>", "<|im_end|>")
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/city"}, "days": {"enum": [1, 2, 3]}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"city": {"type": "string", "maxLength": 12}},
    },
}
LAMP: dict[str, Any] = {
    "name": "lamp",
    "parameters": {
        "properties": {"is_on": {"type": "boolean"}},
        "required": ["is_on"],
        "additionalProperties": False,
    },
}
JSON = json_schema_grammar({"enum": [{"done": True}, {"done": False}]})


def read(text: bytes, tail: str = "<|im_start|>assistant\n") -> list[Segment]:
    parser = AnswerParser(TEMPLATE, tail)
    return parser.feed(text.decode()) + parser.finish()


def check(call: Call) -> None:
    arguments = json.loads(call.arguments)
    if call.name == "lamp":
        assert list(arguments) == ["is_on"]
        assert isinstance(arguments["is_on"], bool)
        return
    assert call.name == "get_weather"
    assert len(arguments["city"]) <= 12
    assert set(arguments) <= {"city", "days"}
    assert arguments.get("days", 1) in (1, 2, 3)


@given(st.data(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_forced_answer_is_calls_and_nothing_else(data: st.DataObject, is_single: bool) -> None:
    grammar = tool_grammar(ADDED, [WEATHER, LAMP], is_forced=True, is_single=is_single)
    segments = read(drawn(grammar, data, preferred=MARKS))
    assert segments
    assert len(segments) == 1 or not is_single
    for segment in segments:
        assert isinstance(segment, Call)
        check(segment)


@given(st.data(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_free_answer_may_call_and_then_calls_well(data: st.DataObject, is_single: bool) -> None:
    grammar = tool_grammar(ADDED, [WEATHER, LAMP], is_forced=False, is_single=is_single)
    text = drawn(grammar, data, preferred=MARKS)
    calls = [s for s in read(text) if isinstance(s, Call)]
    assert len(calls) <= 1 or not is_single
    assert len(calls) == text.count(b"<tool_call>"), "none of them came as text"
    for call in calls:
        check(call)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_an_answer_in_json_may_be_a_call_instead(data: st.DataObject) -> None:
    grammar = tool_grammar(ADDED, [LAMP], is_forced=False, is_single=True, answer=JSON)
    [segment] = read(drawn(grammar, data))
    if isinstance(segment, Call):
        check(segment)
    else:
        assert isinstance(segment, Text)
        assert list(json.loads(segment.text)) == ["done"]


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_thinking_that_the_prompt_has_opened_comes_first(data: st.DataObject) -> None:
    tail = "<|im_start|>assistant\n<think>\n"
    assert opens_thinking(TEMPLATE, tail)
    assert not opens_thinking(TEMPLATE, f"{tail}</think>\n")
    asked = "what does <think> mean?<|im_end|>\n<|im_start|>assistant\n"
    assert not opens_thinking(TEMPLATE, asked), "a person's word opens nothing"
    inner = tool_grammar(ADDED, [LAMP], is_forced=False, is_single=True, answer=JSON)
    for grammar in (behind_thinking(inner), behind_thinking(JSON)):
        text = drawn(grammar, data, preferred=("</think>",))
        thought, answer = text.decode().split("</think>")
        [last] = [s for s in read(text, tail) if not isinstance(s, Reasoning)]
        assert isinstance(last, Call) or json.loads(answer) == json.loads(last.text)
        assert "<tool_call>" not in thought


def test_the_choice_of_a_token_is_the_grammars_where_it_matters() -> None:
    """Nothing but the opening mark begins a forced call, and no other name follows."""
    state = GRAMMARS.start(tool_grammar(ADDED, [LAMP], is_forced=True, is_single=True))
    mask = state.mask()
    assert [i for i, is_allowed in enumerate(mask) if is_allowed] == [
        TOKENIZER.token_to_id("<tool_call>")
    ]
    text = '<tool_call>\n{"name": "lamp", "arguments": {"is_on": true}}\n</tool_call>'
    for token_id in TOKENIZER.encode(text).ids:
        assert state.mask()[token_id]
        state.take(token_id)
    assert state.is_complete


@pytest.mark.parametrize(
    "parameters", [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "no"}}}, 7]
)
def test_parameters_that_are_no_schema_are_refused(parameters: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        tool_grammar(
            ADDED, [{"name": "f", "parameters": parameters}], is_forced=True, is_single=True
        )
    assert caught.value.param == "tools"


def test_a_vocabulary_without_marks_for_calls_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="no tokens for tool calls"):
        tool_grammar({"<s>"}, [LAMP], is_forced=True, is_single=True)


def test_a_function_without_parameters_is_called_with_none() -> None:
    grammar = tool_grammar(ADDED, [{"name": "now"}], is_forced=True, is_single=True)
    state = GRAMMARS.start(grammar)
    text = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    for token_id in TOKENIZER.encode(text).ids:
        state.take(token_id)
    assert state.is_complete
    junk = TOKENIZER.encode('<tool_call>\n{"name": "now", "arguments": {"x": 1}}\n</tool_call>')
    with pytest.raises(InvalidParameter, match="does not follow"):
        GRAMMARS.start(grammar, junk.ids)


def test_free_text_does_not_spell_the_marks() -> None:
    """A call that is spelled in letters would be read as one, and nobody has checked it."""
    grammar = tool_grammar(ADDED, [LAMP], is_forced=False, is_single=True)
    spelled = [i for c in "Well <tool_call>" for i in TOKENIZER.encode(c).ids]
    GRAMMARS.start(grammar, spelled[:-1])
    with pytest.raises(InvalidParameter, match="does not follow"):
        GRAMMARS.start(grammar, spelled)
