"""Events folded into the parts of a message. The browser's run-state.js does the same."""

from collections.abc import Iterable
from typing import Any

from chat.events import Delta, LogEvent, Stopped, ToolCall, ToolResult

Parts = list[dict[str, Any]]


def fold(events: Iterable[LogEvent]) -> Parts:
    """The parts that these events, in order of seq, amount to."""
    parts: Parts = []
    for event in events:
        apply(parts, event)
    return parts


def apply(parts: Parts, event: LogEvent) -> None:
    """Add one event to the parts, in place."""
    match event:
        case Delta(text=text, part=kind) if text:
            if parts and parts[-1]["type"] == kind:
                parts[-1]["text"] += text
            else:
                parts.append({"type": kind, "text": text})
        case ToolCall(id=id_, name=name, arguments=arguments):
            parts.append({"type": "tool_call", "id": id_, "name": name, "arguments": arguments})
        case ToolResult(id=id_, content=content, is_error=is_error):
            parts.append(
                {"type": "tool_result", "id": id_, "content": content, "is_error": is_error}
            )
        case Stopped(chars=chars):
            _cut(parts, chars)


def text_of(parts: Parts) -> str:
    """The text for readers: all text parts joined."""
    return "".join(part["text"] for part in parts if part["type"] == "text")


def _cut(parts: Parts, chars: int) -> None:
    """Keep the first `chars` characters of text; parts that lose all of it go."""
    for part in list(parts):
        if part["type"] == "text":
            part["text"] = part["text"][:chars]
            chars -= len(part["text"])
            if not part["text"]:
                parts.remove(part)
