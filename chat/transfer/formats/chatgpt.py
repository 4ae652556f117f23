"""ChatGPT's data export: `mapping` of nodes with `parent`, and `current_node`.

The zip holds `conversations.json`, or since 2026 shards `conversations-000.json` and so on, in which
many messages have no `metadata` and the model is named by the conversation. OpenAI publishes no
schema; what is here follows real exports and is read with doubt.
"""

from collections import Counter
from typing import Any

from chat.models import Role
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

_HIDDEN = (
    "model_editable_context",
    "user_editable_context",
    "reasoning_recap",
    "app_pairing_content",
)
_MEDIA = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "recording",
    "real_time_user_audio_video_asset_pointer": "recording",
    "video_container_asset_pointer": "video",
}


def is_chat(value: Json) -> bool:
    return isinstance(value.get("mapping"), dict)


def read(value: Json) -> Chat:
    """Raises BadChat."""
    notes: Counter[str] = Counter()
    model = text_or(value.get("default_model_slug"))
    nodes = [_node(id_, dict_or(entry), model, notes) for id_, entry in value["mapping"].items()]
    created = moment(value.get("create_time"))
    turns = turns_of(nodes, text_or(value.get("current_node")) or None, created)
    fields = chat_fields(value.get("title"), created, moment(value.get("update_time")))
    id_ = text_or(value.get("conversation_id")) or text_or(value.get("id"))
    return Chat(id_, fields, turns, "chatgpt", notes)


def _node(id_: str, entry: Json, model: str, notes: Counter[str]) -> Node:
    message = dict_or(entry.get("message"))
    role = dict_or(message.get("author")).get("role")
    metadata = dict_or(message.get("metadata"))
    node = Node(
        id=id_,
        parent=text_or(entry.get("parent")) or None,
        role=Role.USER.value if role == "user" else Role.ASSISTANT.value,
        created_at=moment(message.get("create_time")),
    )
    if role not in ("user", "assistant", "tool") or metadata.get(
        "is_visually_hidden_from_conversation"
    ):
        return node
    node.parts = _parts(id_, role, message, notes)
    if role == "assistant":
        node.model = text_or(metadata.get("model_slug")) or model
    return node


def _parts(id_: str, role: str, message: Json, notes: Counter[str]) -> list[Part]:
    content = dict_or(message.get("content"))
    kind = text_or(content.get("content_type"))
    if kind in _HIDDEN:
        return []
    if kind == "thoughts":
        thoughts = map(dict_or, list_or(content.get("thoughts")))
        said = [text_or(t.get("content")) or text_or(t.get("summary")) for t in thoughts]
        return [reasoning("\n\n".join(said))] if any(said) else []
    pieces = _pieces(content, notes)
    words = "\n".join(piece["text"] for piece in pieces)
    if role == "tool":
        name = text_or(dict_or(message.get("author")).get("name"))
        is_error = kind == "system_error"
        return [tool_result(words, name=name, is_error=is_error)] if words else []
    recipient = text_or(message.get("recipient"), "all")
    if role == "assistant" and recipient != "all":
        return [tool_call(id_, recipient, words)]
    if kind == "code" and words:
        return [text(f"```{text_or(content.get('language')).replace('unknown', '')}\n{words}\n```")]
    return pieces


def _pieces(content: Json, notes: Counter[str]) -> list[Part]:
    pieces: list[Part] = []
    for part in list_or(content.get("parts")):
        if isinstance(part, str):
            pieces += [text(part)] if part else []
        else:
            pieces += _piece(dict_or(part), notes)
    if not pieces:
        for key in ("text", "result", "content"):
            if words := text_or(content.get(key)):
                return [text(words)]
    return pieces


def _piece(part: dict[str, Any], notes: Counter[str]) -> list[Part]:
    kind = text_or(part.get("content_type"))
    if words := text_or(part.get("text")):  # audio_transcription and others with words in them
        return [text(words)]
    if kind in _MEDIA:
        return [left_out(notes, _MEDIA[kind])]
    return [left_out(notes, "attachment")] if part else []
