"""The texts within messages and JSON: what a model reads of a tool's schema or a call. Pure."""

from collections.abc import Callable, Iterable
from typing import Any

from inference import ChatMessage

Change = Callable[[str], str]

MAX_DEPTH = 64
"""Of what is shown to a model, or kept, by code that goes as deep as it does."""


def depth_of(value: Any) -> int:
    """How deep lists and objects are nested; counted level by level, for it may be very deep."""
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [i for v in level for i in (v.values() if isinstance(v, dict) else v)]
    return depth


def texts_in(value: Any) -> list[str]:
    """All strings and names of fields, in their order, however deep they are."""
    found: list[str] = []
    todo = [value]
    while todo:
        match todo.pop():
            case str() as text:
                found.append(text)
            case list() | tuple() as items:
                todo += reversed(items)
            case dict() as fields:
                for name, inner in reversed(fields.items()):
                    todo += (inner, str(name))
    return found


def texts_of(messages: Iterable[ChatMessage]) -> list[str]:
    """What a template shows of messages: their names and calls as well, each call as one text."""
    texts: list[str] = []
    for message in messages:
        texts += [message["content"], message.get("name", "")]
        texts += ["\n".join(texts_in(call["function"])) for call in message.get("tool_calls", ())]
    return texts


def with_texts(value: Any, changed: Change) -> Any:
    """The value with its strings and names as `changed` gives them back. Where it would change what
    only several of them make up together, none of them stays."""
    result = _with_each(value, changed)
    whole = "\n".join(texts_in(result))
    return result if changed(whole) == whole else _with_each(value, lambda _: "")


def message_with_texts(message: ChatMessage, changed: Change) -> ChatMessage:
    """The same of a message: of its content, its name, and the arguments of its calls."""
    result: ChatMessage = {**message, "content": changed(message["content"])}
    if "name" in message:
        result["name"] = changed(message["name"])
    if "tool_calls" in message:
        result["tool_calls"] = [_call_with_texts(call, changed) for call in message["tool_calls"]]
    return result


def _call_with_texts(call: dict[str, Any], changed: Change) -> dict[str, Any]:
    function = call["function"]
    arguments = with_texts(function["arguments"], changed)
    return {**call, "function": {**function, "arguments": arguments}}


def _with_each(value: Any, changed: Change) -> Any:
    match value:
        case str():
            return changed(value)
        case list() | tuple():
            return [_with_each(one, changed) for one in value]
        case dict():
            return {changed(str(k)): _with_each(inner, changed) for k, inner in value.items()}
    return value
