"""Whatever comes over the socket is understood or refused with a reason; nothing else happens."""

import json
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat import actions, frames
from chat.errors import BadFrame, ChatError, NotFound

RUN = str(uuid4())
MESSAGE = {"type": "message.send", "client_id": "c", "text": "hi"}
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def test_a_message() -> None:
    parent = uuid4()
    frame = frames.parse(
        json.dumps({"type": "message.send", "client_id": "c", "text": "hi", "parent": str(parent)})
    )
    assert frame == frames.SendMessage("c", "hi", None, parent, None)


def test_a_message_that_sets_up_a_chat() -> None:
    setup = {"parameters": {"temperature": 0, "seed": 2**60}, "history_strategy": "summary"}
    frame = frames.parse(json.dumps({**MESSAGE, **setup}))
    assert isinstance(frame, frames.SendMessage)
    assert frame.setup.parameters == {"temperature": 0.0, "seed": 2**60}
    assert frame.setup.history_strategy == "summary"
    plain = frames.parse(json.dumps(MESSAGE))
    assert isinstance(plain, frames.SendMessage)
    assert (plain.setup.parameters, plain.setup.history_strategy) == (None, "")


@pytest.mark.parametrize(
    "values",
    [
        {"type": "message.send", "text": "hi"},
        {"type": "message.send", "client_id": "", "text": "hi"},
        {"type": "message.send", "client_id": "c" * 65, "text": "hi"},
        {"type": "message.send", "client_id": "c", "text": 3},
        {"type": "message.send", "client_id": "c", "text": "\ud800"},
        {"type": "message.send", "client_id": "c", "text": "hi", "model": 1},
        {**MESSAGE, "beside": ["\ud800"]},
        {**MESSAGE, "parameters": {"\udfff": 1}},
        {**MESSAGE, "parameters": {"temperature": 3}},
        {**MESSAGE, "parameters": {"temperature": float("nan")}},
        {**MESSAGE, "parameters": {"colour": "red"}},
        {**MESSAGE, "parameters": [1]},
        {**MESSAGE, "history_strategy": "everything"},
        {**MESSAGE, "history_strategy": ["window"]},
        {"type": "run.follow", "run": RUN, "after": -1},
        {"type": "run.follow", "run": RUN, "after": True},
        {"type": "run.follow", "run": RUN, "after": 2**40},
        {"type": "run.stop", "run": RUN, "chars": "all"},
        {"type": "run.stop", "run": None},
        {"type": "unknown"},
        {},
        [],
        None,
        "text",
    ],
)
def test_what_is_wrong_is_named(values: object) -> None:
    with pytest.raises(BadFrame) as caught:
        frames.parse(json.dumps(values))
    assert str(caught.value).encode(), "the answer can be sent"


@pytest.mark.parametrize("letter", ["語", '"', "\n", "\U0001f600"])
def test_as_long_a_message_as_there_may_be_is_understood(letter: str) -> None:
    text = letter * actions.MAX_TEXT_CHARS
    frame = frames.parse(json.dumps({**MESSAGE, "text": text}, ensure_ascii=False))
    assert isinstance(frame, frames.SendMessage)
    assert frame.text == text
    said = [{"role": "user", "parts": [{"type": "text", "text": text}]}]
    temporary = {**MESSAGE, "type": "temporary.send", "messages": said}
    assert isinstance(frames.parse(json.dumps(temporary, ensure_ascii=False)), frames.SendTemporary)


def test_an_id_that_is_none_is_as_missing_as_an_unknown_one() -> None:
    with pytest.raises(NotFound):
        frames.parse(json.dumps({"type": "run.follow", "run": "../../etc"}))


def test_a_character_of_two_halves_is_one() -> None:
    frame = frames.parse(json.dumps({**MESSAGE, "text": "\U0001f600"}, ensure_ascii=True))
    assert isinstance(frame, frames.SendMessage)
    assert frame.text == "\U0001f600"


@pytest.mark.parametrize("raw", ["", "{", "[" * 100_000, "x" * (frames.MAX_FRAME_BYTES + 1)])
def test_no_json_and_too_much(raw: str) -> None:
    with pytest.raises(BadFrame):
        frames.parse(raw)


@given(
    kind=st.sampled_from(
        ["message.send", "run.follow", "run.unfollow", "run.stop", "run.ack", "ping", "?"]
    ),
    fields=st.dictionaries(
        st.sampled_from(
            ["client_id", "text", "conversation", "parent", "model", "run", "seq", "parameters"]
        ),
        _json,
    ),
)
def test_any_json_is_a_frame_or_an_error(kind: str, fields: dict[str, object]) -> None:
    try:
        frames.parse(json.dumps({"type": kind, **fields}))
    except ChatError as error:
        assert error.code in ("bad_frame", "not_found")
