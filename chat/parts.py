"""Events folded into the parts of a message. The browser's run-state.js does the same."""

import secrets
from collections.abc import Iterable
from typing import Any

from chat.events import Delta, LogEvent, Refused, Started, Stopped, ToolCall, ToolResult

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
        case Refused(removes=True):
            parts.clear()


def text_of(parts: Parts) -> str:
    """The text for readers: all text parts joined."""
    return "".join(part["text"] for part in parts if part["type"] == "text")


def with_results(parts: Parts) -> Parts:
    """The parts as a page shows them: each tool call with its `result` in it, or None."""
    results = {part.get("id"): part for part in parts if part["type"] == "tool_result"}
    return [
        part | {"result": results.get(part.get("id"))} if part["type"] == "tool_call" else part
        for part in parts
        if part["type"] != "tool_result"
    ]


def _cut(parts: Parts, chars: int) -> None:
    """Keep the first `chars` characters of text; parts that lose all of it go."""
    for part in list(parts):
        if part["type"] == "text":
            part["text"] = part["text"][:chars]
            chars -= len(part["text"])
            if not part["text"]:
                parts.remove(part)


def unfold(parts: Parts, model: str) -> list[LogEvent]:
    """Events that fold up to these parts, turn by turn, as a run would log them."""
    events: list[LogEvent] = []
    num_chars = {"text": 0, "reasoning": 0}
    seed = secrets.randbits(63)
    turn = 0
    before = ""
    for part in parts:
        kind = part["type"]
        if not events or (before == "tool_result" and kind != "tool_result"):
            turn += bool(events)
            events.append(Started(model, "", seed, turn))
        match kind:
            case "text" | "reasoning":
                events.append(Delta(part["text"], num_chars[kind], kind))
                num_chars[kind] += len(part["text"])
            case "tool_call":
                events.append(ToolCall(part["id"], part["name"], part["arguments"]))
            case "tool_result":
                events.append(ToolResult(part["id"], part["content"], part["is_error"]))
        before = kind
    return events
