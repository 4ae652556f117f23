"""Messages as a model reads them: without the tag characters that spell what no reader sees."""

from collections.abc import Sequence
from typing import Any

from inference import ChatMessage
from moderation.normalising import without_tags


def untagged(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return [_untagged(message) for message in messages]


def _untagged(message: ChatMessage) -> ChatMessage:
    content = _without(message.get("content"))
    return message if content is message.get("content") else {**message, "content": content}


def _without(content: Any) -> Any:
    """The very same where there is nothing to leave out. Of parts, those of text."""
    if isinstance(content, str):
        found = without_tags(content)
        return content if found == content else found
    if isinstance(content, list):
        parts = [_without_in(part) for part in content]
        return content if parts == content else parts
    return content


def _without_in(part: Any) -> Any:
    is_text = isinstance(part, dict) and "text" in part
    return {**part, "text": _without(part["text"])} if is_text else part
