"""Text, reasoning and calls are the same for any chunking; a model's mistakes become text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import AnswerParser, Call, Reasoning, Segment, Text
from tests.inference.segments import joined

HERMES = "<tool_call> <think>"
CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "17 * 23"}}\n</tool_call>'


def _parse(text: str, size: int = 10**9, tail: str = "<|im_start|>assistant\n") -> list[Segment]:
    parser = AnswerParser(HERMES, tail, [{"type": "function", "function": {"name": "calculator"}}])
    segments: list[Segment] = []
    for start in range(0, len(text), size):
        segments += parser.feed(text[start : start + size])
    return joined(segments + parser.finish())


def test_text_reasoning_and_calls() -> None:
    text = f"<think>\nHm, a product.\n</think>\n\nLet me see.\n{CALL}\n{CALL}"
    call = Call("calculator", '{"expression": "17 * 23"}')
    assert _parse(text) == [Reasoning("Hm, a product.\n"), Text("Let me see."), call, call]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\nHm <b>x</b>\n</think>\n\nSo.\n{CALL}\n{CALL}",
        "plain < text > with <tool_ and </think",
        '<tool_call>\n{"name": "f", "arguments": {"a": "</tool", "b": [1, 2]}}\n</tool_call>',
        "<tool_call>\n{not json}\n</tool_call>",
        '<tool_call>\n{"name": "f", "argum',
        "  \n spaces at both ends \n ",
    ],
)
def test_any_chunking_gives_the_same(text: str) -> None:
    whole = _parse(text)
    for size in (1, 2, 3, 5, 7, 11):
        assert _parse(text, size) == whole


@given(st.text(alphabet='<>/tool_cahink"{}: \n', max_size=60))
@settings(max_examples=200, deadline=None)
def test_nothing_raises_and_chunking_never_matters(text: str) -> None:
    assert _parse(text, 1) == _parse(text)


@pytest.mark.parametrize(
    "raw",
    ["{bad}", '{"name": 3, "arguments": {}}', '["name"]', '{"name": "f", "arguments": "x"}', ""],
)
def test_a_malformed_call_comes_as_text(raw: str) -> None:
    (segment,) = _parse(f"<tool_call>{raw}</tool_call>")
    assert isinstance(segment, Text)
    assert raw in segment.text


def test_a_cut_off_call_comes_as_text() -> None:
    assert _parse('<tool_call>\n{"name": "f"') == [Text('<tool_call>\n{"name": "f"')]


def test_arguments_are_one_json_object_as_text() -> None:
    (call,) = _parse('<tool_call>{"name": "f", "arguments": {"ü": [1, {"x": null}]}}</tool_call>')
    assert isinstance(call, Call)
    assert json.loads(call.arguments) == {"ü": [1, {"x": None}]}


def test_thinking_that_the_template_began_is_reasoning() -> None:
    assert _parse("so\n</think>\n\nYes.", tail="<|im_start|>assistant\n<think>\n") == [
        Reasoning("so\n"),
        Text("Yes."),
    ]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_where_no_tool_is_offered_a_call_is_text(size: int) -> None:
    parser = AnswerParser(HERMES, "<|im_start|>assistant\n")
    text = f"<think>\nHm.\n</think>\n\nSo: {CALL} Done."
    found = [s for at in range(0, len(text), size) for s in parser.feed(text[at : at + size])]
    assert joined(found + parser.finish()) == [Reasoning("Hm.\n"), Text(f"So: {CALL} Done.")]


def test_a_model_without_tools_is_left_alone() -> None:
    parser = AnswerParser("plain template", "Hello<|im_end|>\n<|im_start|>assistant\n")
    assert parser.feed(CALL) + parser.finish() == [Text(CALL)]


def test_the_prompt_is_never_taken_for_the_answer() -> None:
    assert _parse("Yes.", tail="no anchor here <think>") == [Text("Yes.")]
