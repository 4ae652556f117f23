"""Text, reasoning and calls are the same for any chunking; a model's mistakes become text."""

import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import AnswerParser, Call, Reasoning, Segment, Text
from tests.inference.segments import joined

HERMES = "<tool_call> <think>"
CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "17 * 23"}}\n</tool_call>'

CALL_PARTS = ['{"name": "f", "arguments": {"a": "', '"}}', "<think>", "</think>"]


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


@given(
    st.lists(st.sampled_from(["<tool_call>", "</tool_call>", '"', "\\", "\n", "x", *CALL_PARTS]))
)
@settings(max_examples=300, deadline=None)
def test_chunking_never_matters_for_marks_in_strings(parts: list[str]) -> None:
    text = "".join(parts)
    whole = _parse(text)
    assert all(_parse(text, size) == whole for size in (1, 4))


@pytest.mark.parametrize(
    "raw",
    ["{bad}", '{"name": 3, "arguments": {}}', '["name"]', '{"name": "f", "arguments": "x"}', ""],
)
def test_a_malformed_call_comes_as_text(raw: str) -> None:
    (segment,) = _parse(f"<tool_call>{raw}</tool_call>")
    assert isinstance(segment, Text)
    assert raw in segment.text


def _spelling(argument: str) -> str:
    call = json.dumps(
        {"name": "f", "arguments": {"a": argument, "b": [1, '"']}}, ensure_ascii=False
    )
    return f"<tool_call>\n{call}\n</tool_call>"


ARGUMENTS = [
    "</tool_call>",
    'a "</tool_call>" b </tool_call> c <think> d </think>',
    f"as in {CALL} or so",
    "\\</tool_call>\\",
    'a\n"</tool_call>',
]


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_an_argument_may_spell_the_mark_that_ends_a_call(argument: str, size: int) -> None:
    text, call, other, end = _parse(f"Well: {_spelling(argument)}{CALL}Done.", size)
    assert (text, end) == (Text("Well:"), Text(" Done."))
    assert isinstance(call, Call)
    assert json.loads(call.arguments) == {"a": argument, "b": [1, '"']}
    assert other == Call("calculator", '{"expression": "17 * 23"}')


@pytest.mark.parametrize(
    "broken",
    [
        '<tool_call>{"name": "f", "arguments": {"a": "b}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"a": "b}}\n</tool_call>',
        '<tool_call>{"a": "x</tool_call> y"}</tool_call>',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_call_that_is_none_ends_at_its_first_mark(broken: str, size: int) -> None:
    for rest in ("", " and so on.", f"\n\n{CALL}\nand so on."):
        segments = _parse(broken + rest, size)
        first, *others = segments
        assert isinstance(first, Text)
        shown = "".join(s.text for s in segments if isinstance(s, Text))
        assert shown.startswith(broken)
        assert [s for s in others if isinstance(s, Call)] == (
            [Call("calculator", '{"expression": "17 * 23"}')] if CALL in rest else []
        )


def test_what_follows_a_mark_in_a_string_waits_no_longer_than_it_may_be_one() -> None:
    parser = AnswerParser(HERMES, "<|im_start|>assistant\n", [{"function": {"name": "f"}}])
    begun = '<tool_call>{"name": "f", "arguments": {"a": "</tool_call>'
    assert joined(parser.feed(begun)) == []
    assert joined(parser.feed("Oh\nwell.")) == [Text(f"{begun}Oh\nwell.")]


@pytest.mark.parametrize(
    ("template", "tail", "opening", "mark", "closing"),
    [
        (HERMES, "<|im_start|>assistant\n", "<tool_call>", "</tool_call>", "}</tool_call>"),
        ("[TOOL_CALLS]", "[/INST]", "[TOOL_CALLS]", "[TOOL_CALLS]", "}</s>"),
    ],
)
def test_a_long_string_behind_a_mark_is_read_once(
    template: str, tail: str, opening: str, mark: str, closing: str
) -> None:
    """A file about calls, say, which a call writes."""
    said = mark + "all \\n about calls " * 4_000
    call = f'{opening}{{"name": "f", "arguments": {{"a": "{said}"}}{closing}'
    parser = AnswerParser(template, tail, [{"function": {"name": "f"}}])
    began_s = process_time()
    segments = [s for at in range(0, len(call), 4) for s in parser.feed(call[at : at + 4])]
    segments += parser.finish()
    assert process_time() - began_s < 4, "a quarter of a minute, were all of it read at each piece"
    (read,) = segments
    assert isinstance(read, Call)
    assert json.loads(read.arguments)["a"] == json.loads(f'"{said}"')


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
