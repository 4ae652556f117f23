"""What foreign trees have in common: nodes that say nothing go, and an answer is one message.

Other systems keep an answer that used tools as several nodes; here it is one message with parts.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from chat.models import Message, MessageStatus, Role
from chat.transfer.facts import in_utc
from chat.transfer.portable import BadChat, Json, Turn, portable_fields

Part = dict[str, Any]
MAX_NODES = 50_000
MAX_PARTS = 200_000


@dataclass
class Node:
    """A foreign message. Without parts it says nothing, and its children become its parent's."""

    id: str
    parent: str | None
    role: str
    parts: list[Part] = field(default_factory=list)
    model: str = ""
    created_at: datetime | None = None
    status: str = MessageStatus.COMPLETE.value


def turns_of(nodes: list[Node], current: str | None, start: datetime | None) -> list[Turn]:
    """Messages of the nodes; the branch to `current` is the one that is shown. Raises BadChat."""
    if len(nodes) > MAX_NODES:
        raise BadChat(f"It has more than {MAX_NODES:,} messages.")
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        if node.parent not in by_id or node.parent == node.id:
            node.parent = None
    ordered = _parents_first(nodes)
    shown = _path(by_id, current)
    _splice(ordered, by_id)
    kept = _merge_answers([node for node in ordered if node.parts])
    return _turns(kept, shown, start)


def _parents_first(nodes: list[Node]) -> list[Node]:
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    found: list[Node] = []
    todo = list(reversed(children.get(None, [])))
    while todo:
        found.append(todo.pop())
        todo += reversed(children.get(found[-1].id, []))
    if len(found) < len(nodes):
        raise BadChat("Its messages go round in a circle.")
    return found


def _path(by_id: dict[str, Node], current: str | None) -> set[str]:
    path: set[str] = set()
    while current is not None and current in by_id:
        path.add(current)
        current = by_id[current].parent
    return path


def _splice(ordered: list[Node], by_id: dict[str, Node]) -> None:
    """Parents come first, so a silent one has found its own place when its children look for it."""
    for node in ordered:
        parent = by_id.get(node.parent or "")
        if parent is not None and not parent.parts:
            node.parent = parent.parent


def _merge_answers(ordered: list[Node]) -> list[Node]:
    """Nodes of one answer become one; where it forks, each fork has the beginning."""
    by_id = {node.id: node for node in ordered}
    num_children = Counter(node.parent for node in ordered)
    has_question = {node.parent for node in ordered if node.role == Role.USER}
    goes_on = set()  # answers that are only the beginning of others
    num_copied = 0
    for node in ordered:
        parent = by_id.get(node.parent or "")
        if node.role != Role.ASSISTANT or parent is None or parent.role != Role.ASSISTANT:
            continue
        if parent.id not in has_question:
            goes_on.add(parent.id)
        if num_children[parent.id] == 1:
            parent.parts += node.parts
            node.parts = parent.parts
        else:
            num_copied += len(parent.parts)
            node.parts = [*parent.parts, *node.parts]
        if num_copied > MAX_PARTS:
            raise BadChat("Its answers fork too often.")
        node.parent = parent.parent
        node.model = node.model or parent.model
        node.created_at = parent.created_at or node.created_at
    return [node for node in ordered if node.id not in goes_on]


def _turns(kept: list[Node], shown: set[str], start: datetime | None) -> list[Turn]:
    has_choice = "chosen" in portable_fields(Message)
    clock = start or datetime.now(UTC)
    turns = []
    for node in kept:
        # Where no time is known, or an impossible one, the order is what counts.
        clock = node.created_at or clock + timedelta(milliseconds=1)
        fields: Json = {
            "role": node.role,
            "status": node.status if node.role == Role.ASSISTANT else MessageStatus.COMPLETE.value,
            "parts": _with_results(node.parts),
            "model": node.model[:200],
            "created_at": clock.isoformat(),
        }
        if has_choice:
            fields["chosen"] = 1 if node.id in shown else 0
        turns.append(Turn(node.id, node.parent, fields))
    return turns


def _with_results(parts: list[Part]) -> list[Part]:
    """Each result gets the id of the call before it; one without a call gets a call."""
    result: list[Part] = []
    open_call: str | None = None
    for part in parts:
        if part["type"] == "tool_call":
            open_call = part["id"]
        elif part["type"] == "tool_result" and not part.get("id"):
            name = part.get("name") or "tool"
            if open_call is None:
                open_call = f"call-{len(result)}"
                result.append(_call(open_call, name, ""))
            part = {**part, "id": open_call}
            open_call = None
        if part["type"] == "tool_result":
            part = {name: part[name] for name in ("type", "id", "content", "is_error")}
        previous = result[-1] if result else None
        if previous and part["type"] == previous["type"] == "text":
            result[-1] = text(f"{previous['text']}\n\n{part['text']}")
        else:
            result.append(part)
    return result


# --- parts -----------------------------------------------------------------------------------------


def text(words: str) -> Part:
    return {"type": "text", "text": words}


def reasoning(words: str) -> Part:
    return {"type": "reasoning", "text": words}


def tool_call(id_: str, name: str, arguments: str) -> Part:
    return _call(id_, name, arguments)


def _call(id_: str, name: str, arguments: str) -> Part:
    return {"type": "tool_call", "id": id_, "name": name[:200], "arguments": arguments}


def tool_result(content: str, *, name: str = "", id_: str = "", is_error: bool = False) -> Part:
    """Without an id it belongs to the call before it."""
    return {
        "type": "tool_result", "id": id_, "name": name, "content": content, "is_error": is_error,
    }  # fmt: skip


# --- values ----------------------------------------------------------------------------------------


def text_or(value: Any, default: str = "") -> str:
    return value if isinstance(value, str) else default


def dict_or(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def list_or(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def moment(value: Any) -> datetime | None:
    """Seconds, milliseconds or nanoseconds since 1970, or ISO 8601; None for anything else."""
    try:
        if isinstance(value, str):
            return in_utc(datetime.fromisoformat(value))
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return None
        while abs(value) > 1e11:
            value /= 1000
        return in_utc(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def chat_fields(title: Any, created: datetime | None, updated: datetime | None) -> Json:
    fields: Json = {"title": " ".join(text_or(title).split())[:200], "title_by_hand": True}
    if created or updated:
        fields["created_at"] = (created or updated).isoformat()  # type: ignore[union-attr]
        fields["updated_at"] = (updated or created).isoformat()  # type: ignore[union-attr]
    return fields


def left_out(notes: Counter[str], what: str) -> Part:
    """A sentence in the place of what cannot be imported, and a line in the report."""
    notes[f"{what}s"] += 1
    return text(f"[{what.capitalize()} left out]")
