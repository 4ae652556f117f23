"""Bodies of programs are validated once, however deep they are."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, ValidationError

from chat.openai_schemas import ChatCompletionIn
from chat.strict import Strict

looked_at: list[str] = []


def note(value: str) -> str:
    looked_at.append(value)
    return value


class Inner(Strict):
    text: Annotated[str, AfterValidator(note)]


class Middle(Strict):
    inner: list[Inner]


class Outer(Strict):
    middle: Middle
    left_out: int | None = None


def test_each_value_is_looked_at_once() -> None:
    looked_at.clear()
    body = {"middle": {"inner": [{"text": "a"}, {"text": "b"}]}}
    outer = Outer.model_validate(body)
    assert looked_at == ["a", "b"]
    assert outer.model_dump(exclude_unset=True) == body


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"middle": {"inner": [{"text": 1}]}}, ("middle", "inner", 0, "text")),
        ({"middle": {"inner": [], "more": 1}}, ("middle", "more")),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, object], place: tuple[object, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(body)
    assert [error["loc"] for error in caught.value.errors()] == [place]


def test_a_chat_is_read_from_its_fields_and_from_another_shape_of_request() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    read = ChatCompletionIn.model_validate({"model": "m", "messages": messages, "seed": 3})
    again = ChatCompletionIn(model="m", messages=read.messages, seed=3)
    assert read.model_dump(exclude_unset=True) == again.model_dump(exclude_unset=True)
    assert read.model_dump(exclude_unset=True, by_alias=True)["messages"] == messages
