"""LibreChat's JSON of one conversation: `messages`, flat by `parentMessageId`, or a tree of `children`.

The tree stands under `messages` or, since 0.7, `messagesTree`; it is nested as deep as the chat is
long, so that a long one cannot be read. Exported flat it can.
"""

import json
from collections import Counter
from typing import Any

from chat.models import MessageStatus, Role
from chat.transfer.nodes import (
    Node,
    Part,
    chat_fields,
    dict_or,
    left_out,
    list_or,
    moment,
    reasoning,
    text,
    text_or,
    tool_call,
    tool_result,
    turns_of,
)
from chat.transfer.portable import Chat, Json


def is_chat(value: Json) -> bool:
    return bool(value.get("conversationId")) and isinstance(_messages(value), list)


def read(value: Json) -> Chat:
    """Raises BadChat."""
    notes: Counter[str] = Counter()
    nodes: list[Node] = []
    todo: list[tuple[Any, str | None]] = [(m, None) for m in reversed(list_or(_messages(value)))]
    while todo:
        entry, parent = todo.pop()
        node = _node(dict_or(entry), parent, f"message-{len(nodes)}", notes)
        nodes.append(node)
        todo += [(child, node.id) for child in reversed(list_or(dict_or(entry).get("children")))]
    times = [node.created_at for node in nodes if node.created_at]
    newest = max(nodes, key=lambda node: node.created_at or times[0]).id if times else None
    turns = turns_of(nodes, newest, min(times, default=None))
    fields = chat_fields(value.get("title"), min(times, default=None), max(times, default=None))
    fields["system_prompt"] = text_or(dict_or(value.get("options")).get("promptPrefix"))
    return Chat(text_or(value["conversationId"]), fields, turns, "librechat", notes)


def _messages(value: Json) -> Any:
    return value.get("messagesTree") or value.get("messages")


def _node(entry: Json, parent: str | None, otherwise: str, notes: Counter[str]) -> Node:
    is_user = entry.get("isCreatedByUser") is True
    node = Node(
        id=text_or(entry.get("messageId")) or otherwise,
        parent=parent or text_or(entry.get("parentMessageId")) or None,
        role=Role.USER.value if is_user else Role.ASSISTANT.value,
        model="" if is_user else text_or(entry.get("model")),
        created_at=moment(entry.get("createdAt")),
    )
    for part in list_or(entry.get("content")):
        node.parts += _part(dict_or(part), notes)
    if not node.parts and (words := text_or(entry.get("text"))):
        node.parts = [text(words)]
    node.parts += [left_out(notes, "file") for _ in list_or(entry.get("files"))]
    if entry.get("error") is True:
        node.status = MessageStatus.FAILED.value
    elif entry.get("unfinished") is True:
        node.status = MessageStatus.STOPPED.value
    return node


def _part(part: Json, notes: Counter[str]) -> list[Part]:
    kind = part.get("type")
    if kind in ("text", "error", "think"):
        value = part.get("think" if kind == "think" else "text")
        words = text_or(value) or text_or(dict_or(value).get("value"))
        made = reasoning(words) if kind == "think" else text(words)
        return [made] if words else []
    if kind == "tool_call":
        return _call(dict_or(part.get("tool_call")))
    return [left_out(notes, "image" if "image" in text_or(kind) else "attachment")] if part else []


def _call(call: Json) -> list[Part]:
    inner = dict_or(call.get("function"))
    id_ = text_or(call.get("id")) or "call"
    given = call.get("args") or inner.get("arguments") or ""
    output = text_or(call.get("output")) or text_or(inner.get("output"))
    name = text_or(call.get("name")) or text_or(inner.get("name")) or "tool"
    made = tool_call(id_, name, given if isinstance(given, str) else json.dumps(given))
    return [made, tool_result(output, id_=id_)] if output else [made]
