"""Open WebUI's chat export: a list of `{id, title, chat: {history: {messages, currentId}}}`.

Reasoning and tool calls stand in the text as `<details>` blocks, which become parts.
"""

import re
from collections import Counter
from html import unescape

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

_DETAILS = re.compile(r'<details type="(reasoning|tool_calls)"([^<>]*)>')
_END = "</details>"
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]+)="([^"]*)"')
_SUMMARY = re.compile(r"(?<!\s)\s*<summary>[^<]*</summary>")


def is_chat(value: Json) -> bool:
    chat = dict_or(value.get("chat")) or value
    return isinstance(dict_or(chat.get("history")).get("messages"), dict)


def read(value: Json) -> Chat:
    """Raises BadChat."""
    notes: Counter[str] = Counter()
    chat = dict_or(value.get("chat")) or value
    history = dict_or(chat["history"])
    nodes = [_node(id_, dict_or(entry), notes) for id_, entry in history["messages"].items()]
    created = moment(value.get("created_at")) or moment(chat.get("timestamp"))
    turns = turns_of(nodes, text_or(history.get("currentId")) or None, created)
    title = value.get("title") or chat.get("title")
    fields = chat_fields(title, created, moment(value.get("updated_at")))
    fields["system_prompt"] = text_or(chat.get("system"))
    return Chat(
        text_or(value.get("id")) or text_or(chat.get("id")), fields, turns, "openwebui", notes
    )


def _node(id_: str, entry: Json, notes: Counter[str]) -> Node:
    role = text_or(entry.get("role"))
    node = Node(
        id=id_,
        parent=text_or(entry.get("parentId")) or None,
        role=Role.USER.value if role == "user" else Role.ASSISTANT.value,
        model=text_or(entry.get("model")),
        created_at=moment(entry.get("timestamp")),
    )
    if role not in ("user", "assistant"):
        return node
    words = text_or(entry.get("content"))
    node.parts = _parts(words) if role == "assistant" else [text(words)] * bool(words)
    for file in map(dict_or, list_or(entry.get("files"))):
        node.parts.append(left_out(notes, "image" if file.get("type") == "image" else "file"))
    if error := entry.get("error"):
        node.status = MessageStatus.FAILED.value
        node.parts = node.parts or [text(text_or(dict_or(error).get("content")) or "[Failed]")]
    elif entry.get("done") is False:
        node.status = MessageStatus.STOPPED.value
    return node


def _parts(words: str) -> list[Part]:
    parts: list[Part] = []
    done = 0
    while (begin := _DETAILS.search(words, done)) and (end := words.find(_END, begin.end())) >= 0:
        parts += _said(words[done : begin.start()])
        parts += _block(begin[1], begin[2], words[begin.end() : end], f"call-{len(parts)}")
        done = end + len(_END)
    return parts + _said(words[done:])


def _said(words: str) -> list[Part]:
    return [text(words.strip("\n"))] if words.strip() else []


def _block(kind: str, attributes: str, body: str, otherwise: str) -> list[Part]:
    """`otherwise` is the id of a call that has none."""
    if kind == "reasoning":
        lines = _SUMMARY.sub("", body, count=1).strip("\n").split("\n")
        thought = unescape("\n".join(line.removeprefix(">").removeprefix(" ") for line in lines))
        return [reasoning(thought)] if thought.strip() else []
    given = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
    id_ = given.get("id") or otherwise
    call = tool_call(id_, given.get("name", "tool"), given.get("arguments", ""))
    return [call, tool_result(given["result"], id_=id_)] if given.get("result") else [call]
