"""Which turns of a long chat the model is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import ChatMessage, ContextTooLong, fit_messages

SYSTEM: ChatMessage = {"role": "system", "content": "You help."}


def _encode(messages: list[ChatMessage]) -> tuple[int, ...]:
    return tuple(json.dumps(messages).encode())


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(100, 600))
def test_what_fits_is_the_system_message_and_the_newest_turns(sizes: list[int], limit: int) -> None:
    chat: list[ChatMessage] = []
    for i, size in enumerate(sizes):
        chat.append({"role": "user", "content": f"{i}" + "q" * size})
        if i < len(sizes) - 1:
            chat.append({"role": "assistant", "content": "a" * size})
    messages = [SYSTEM, *chat]
    try:
        kept, ids = fit_messages(messages, _encode, limit, max_context_tokens=limit + 50)
    except ContextTooLong as error:
        assert len(_encode([messages[0], messages[-1]])) > limit
        assert error.num_prompt_tokens > limit
        assert error.max_context_tokens == limit + 50
        return
    assert len(ids) <= limit
    assert kept[0] == messages[0]
    assert kept[1]["role"] == "user"
    assert messages[-len(kept) + 1 :] == kept[1:]


def test_a_message_that_cannot_fit_tells_both_counts() -> None:
    with pytest.raises(ContextTooLong, match="context_length_exceeded") as caught:
        fit_messages(
            [SYSTEM, {"role": "user", "content": "x" * 900}],
            _encode,
            100,
            max_context_tokens=150,
        )
    assert caught.value.max_context_tokens == 150
    assert "holds 150, 50 of them kept" in str(caught.value)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(300, 3000))
def test_the_most_turns_that_fit_are_kept(sizes: list[int], limit: int) -> None:
    turns = [{"role": "user", "content": "x" * size} for size in sizes]
    messages = [SYSTEM, *turns]
    try:
        kept, ids = fit_messages(messages, _encode, limit, max_context_tokens=limit + 50)
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
    kept, _ = fit_messages([SYSTEM, *turns], encode, 1600, max_context_tokens=2000)
    assert len(kept) == 1 + 15
    assert len(encoded) <= 12
    assert sum(encoded) < 12 * 1600
