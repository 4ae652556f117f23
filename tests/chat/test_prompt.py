"""What a model is shown: a stable prefix, whole turns, and tool use in order."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.prompt import assistant_messages, fit, with_system
from inference import ChatMessage, ContextTooLong


def _encode(messages: list[ChatMessage]) -> tuple[int, ...]:
    return tuple(json.dumps(messages).encode())


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


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(100, 600))
def test_what_fits_is_the_system_message_and_the_newest_turns(sizes: list[int], limit: int) -> None:
    chat: list[ChatMessage] = []
    for i, size in enumerate(sizes):
        chat.append({"role": "user", "content": f"{i}" + "q" * size})
        if i < len(sizes) - 1:
            chat.append({"role": "assistant", "content": "a" * size})
    messages = with_system("", chat)
    try:
        kept, ids = fit(messages, _encode, limit, max_context_tokens=limit + 50)
    except ContextTooLong as error:
        assert len(_encode([messages[0], messages[-1]])) > limit
        assert error.num_prompt_tokens > limit
        assert error.max_context_tokens == limit + 50
        return
    assert len(ids) <= limit
    assert kept[0] == messages[0]
    assert kept[1]["role"] == "user"
    assert messages[-len(kept) + 1 :] == kept[1:]


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


def test_a_message_that_cannot_fit_tells_both_counts() -> None:
    with pytest.raises(ContextTooLong, match="context_length_exceeded") as caught:
        fit(
            with_system("", [{"role": "user", "content": "x" * 900}]),
            _encode,
            100,
            max_context_tokens=150,
        )
    assert caught.value.max_context_tokens == 150
    assert "holds 150, 50 of them kept" in str(caught.value)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(300, 3000))
def test_the_most_turns_that_fit_are_kept(sizes: list[int], limit: int) -> None:
    turns = [{"role": "user", "content": "x" * size} for size in sizes]
    messages = with_system("", turns)
    try:
        kept, ids = fit(messages, _encode, limit, max_context_tokens=limit + 50)
    except ContextTooLong:
        assert len(_encode(messages[:1] + messages[-1:])) > limit
        return
    dropped = len(messages) - len(kept)
    assert kept == messages[:1] + messages[1 + dropped :]
    assert len(ids) <= limit
    if dropped:
        assert len(_encode(messages[:1] + messages[dropped:])) > limit, "one more turn would fit"


def test_a_long_chat_costs_little_more_than_what_fits() -> None:
    encoded: list[int] = []

    def encode(messages: list[dict[str, object]]) -> tuple[int, ...]:
        encoded.append(sum(len(str(m["content"])) for m in messages))
        return tuple(range(encoded[-1]))

    turns = [{"role": "user", "content": "x" * 100} for _ in range(4000)]
    kept, _ = fit(with_system("s", turns), encode, 1600, max_context_tokens=2000)
    assert len(kept) == 1 + 15
    assert len(encoded) <= 12
    assert sum(encoded) < 12 * 1600
