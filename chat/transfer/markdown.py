"""A chat as Markdown, for people and for other programs that read it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from chat.made_pictures import made_in
from chat.models import Message, Role

_FENCE = re.compile(r"`{3,}")


def to_markdown(title: str, messages: Iterable[Message]) -> str:
    """`messages` is a branch, or a whole tree with each parent before its children."""
    pieces = [f"# {_one_line(title) or 'New chat'}"]
    numbers: dict[Any, int] = {}
    previous: Any = None
    for number, message in enumerate(messages, start=1):
        numbers[message.pk] = number
        if message.parent_id != previous:
            behind = numbers.get(message.parent_id)
            pieces.append(f"---\n\n*Another branch, behind message {behind}:*" if behind else "---")
        previous = message.pk
        pieces.append(_heading(message, number))
        pieces += _parts(message.parts)
    return "\n\n".join(pieces) + "\n"


def _heading(message: Message, number: int) -> str:
    who = "You" if message.role == Role.USER else "Answer"
    model = f" · {_one_line(message.model)}" if message.model else ""
    return f"## {number}. {who}{model} · {message.created_at:%Y-%m-%d %H:%M} UTC"


def _parts(parts: list[dict[str, Any]]) -> Iterator[str]:
    made = made_in(parts)
    for part in parts:
        if part.get("id") in made:
            if part["type"] == "tool_call":
                yield f"*Picture: {_one_line(made[part['id']].prompt)}*"
            continue
        match part["type"]:
            case "text":
                yield part["text"]
            case "reasoning":
                yield f"<details><summary>Thought</summary>\n\n{part['text']}\n\n</details>"
            case "tool_call":
                yield f"Used {_one_line(part['name'])}:\n\n{_fenced(part['arguments'])}"
            case "tool_result":
                yield f"Returned:\n\n{_fenced(part['content'])}"


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
