"""What a model reads, without the tag characters that spell what no reader sees."""

from collections.abc import Sequence
from typing import Any

from inference import ChatMessage
from moderation.normalising import without_tags


def untagged(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Their contents, names and calls."""
    return [untagged_value(message) for message in messages]


def untagged_value(value: Any) -> Any:
    """All strings of a value of JSON, and names of its fields. The very same where there is nothing to
    leave out."""
    match value:
        case str():
            text = without_tags(value)
            return value if text == value else text
        case list() | tuple():
            items = [untagged_value(one) for one in value]
            return value if all(map(_is_same, items, value)) else items
        case dict():
            names = [untagged_value(name) for name in value]
            inner = [untagged_value(one) for one in value.values()]
            is_same = all(map(_is_same, names, value)) and all(map(_is_same, inner, value.values()))
            return value if is_same else dict(zip(names, inner, strict=True))
    return value


def _is_same(one: Any, other: Any) -> bool:
    return one is other
