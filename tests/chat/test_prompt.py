"""What a model is shown: a stable prefix, whole turns, and tool use in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.prompt import assistant_messages, with_system
from inference import ChatMessage

_turn = st.tuples(st.text(max_size=30), st.text(max_size=30))


@given(st.lists(_turn, max_size=6), st.text(max_size=20), _turn)
def test_the_next_prompt_begins_with_this_one(
    turns: list[tuple[str, str]], system: str, new: tuple[str, str]
) -> None:
    chat: list[ChatMessage] = []
    for question, reply in turns:
        chat += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    before = with_system(system, chat)
    after = with_system(system, [*chat, {"role": "user", "content": new[0]}])
    assert after[: len(before)] == before


def test_an_answer_with_tools_is_told_in_order() -> None:
    parts = [
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_call", "id": "a", "name": "clock", "arguments": "{}"},
        {"type": "tool_call", "id": "b", "name": "calculator", "arguments": '{"expression": "1"}'},
        {"type": "tool_result", "id": "a", "content": "noon", "is_error": False},
        {"type": "tool_result", "id": "b", "content": "1", "is_error": False},
        {"type": "text", "text": "It is noon."},
    ]
    messages = assistant_messages(parts)
    assert [m["role"] for m in messages] == ["assistant", "tool", "tool", "assistant"]
    assert messages[0]["content"] == "Let me see."
    assert [c["id"] for c in messages[0]["tool_calls"]] == ["a", "b"]
    assert messages[0]["tool_calls"][1]["function"]["arguments"] == {"expression": "1"}
    assert [m["tool_call_id"] for m in messages[1:3]] == ["a", "b"]
    assert messages[3] == {"role": "assistant", "content": "It is noon."}


def test_an_empty_answer_is_not_shown() -> None:
    assert assistant_messages([]) == []
    assert assistant_messages([{"type": "reasoning", "text": "hm"}]) == []


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("print('hi')", {"input": "print('hi')"}),
        ("[1]", {"input": [1]}),
        ('"text"', {"input": "text"}),
        ("[" * 100_000, {"input": "[" * 100_000}),
        (
            '{"a": ' * 400 + '"\\u0430"' + "}" * 400,
            {"input": '{"a": ' * 400 + '"\u0430"' + "}" * 400},
        ),
        ("1" * 5_000, {"input": "1" * 5_000}),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_call_of_another_system_is_shown_with_an_object(
    arguments: str, shown: dict[str, Any]
) -> None:
    part = {"type": "tool_call", "id": "a", "name": "python", "arguments": arguments}
    (message,) = assistant_messages([part])
    assert message["tool_calls"][0]["function"]["arguments"] == shown
