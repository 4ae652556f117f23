"""A chat outside the database: what export writes, what every import becomes, and its content hash.

The fields are those of the rows but for the ones named here, so that a column that comes later
round-trips without a change. Ids are names within the chat; rows that are made of it get new ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from chat import feedback
from chat.branches import UNSAID
from chat.errors import BadFrame, BadRequest
from chat.events import places_of
from chat.models import Conversation, Message, MessageStatus
from chat.parameters import Parameters
from chat.storable import is_storable, storable
from chat.temporary_sources import found_in, named_in
from chat.transfer import facts

Json = dict[str, Any]

_KEPT_BACK = {
    # whose it is, what was known of them, and what is meant for this installation's doors
    Conversation: {"id", "owner", "deleted_at", "tool_servers", "memory", "remembers"},
    # `text` follows from the parts; `client_id` keeps a send from arriving twice; all are `brought`
    Message: {
        *("id", "conversation", "parent", "text", "client_id", "deletion", "deleted_at"),
        "brought",
    },
}
MAX_MESSAGES = 20_000


class BadChat(ValueError):
    """A chat that cannot be imported, with the reason for people."""


@dataclass
class Turn:
    """A message: `parent` is the id of another one, None at a beginning."""

    id: str
    parent: str | None
    fields: Json


@dataclass
class Chat:
    """`messages` may come in any order; siblings keep the order of their times. `notes` say what
    could not be taken along, and how often."""

    id: str
    fields: Json
    messages: list[Turn]
    source: str = "vitrine"
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        return str(self.fields.get("title") or "")

    @property
    def origin(self) -> str:
        """Where it came from, to be known again."""
        return f"{self.source}:{self.id}"[:200]


@cache
def portable_fields(model: type[models.Model]) -> dict[str, "models.Field[Any, Any]"]:
    """The fields of a row that travel, by name. Relations do not."""
    fields = model._meta.concrete_fields
    kept_back = _KEPT_BACK[model]
    return {f.name: f for f in fields if f.name not in kept_back and not f.is_relation}


def chat_of(conversation: Conversation, rows: Iterable[Message]) -> Chat:
    """The rows of a conversation as they travel; `rows` are all that is to be seen of it."""
    turns = [
        Turn(str(row.pk), str(row.parent_id) if row.parent_id else None, _fields_of(row))
        for row in rows
    ]
    return Chat(str(conversation.pk), _fields_of(conversation), turns)


def _fields_of(row: models.Model) -> Json:
    fields = {name: _plain(getattr(row, name)) for name in portable_fields(type(row))}
    if fields.get("status") == MessageStatus.RUNNING:
        fields["status"] = MessageStatus.STOPPED.value  # what is written later stays here
    if fields.get("found"):  # headings may be those of what is no longer shared
        fields["found"] = {**fields["found"], "excerpts": places_of(fields["found"]["excerpts"])}
    if isinstance(row, Message) and row.deleted_at is not None:
        fields |= {name: value for name, value in UNSAID.items() if name in fields}
    return fields


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def to_json(chat: Chat) -> Json:
    """One entry of `chats` in docs/data.md."""
    messages = [{"id": m.id, "parent": m.parent, **m.fields} for m in chat.messages]
    return {"id": chat.id, **chat.fields, "messages": messages}


def from_json(value: Any) -> Chat:
    """The way back. Raises BadChat."""
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise BadChat("It is no chat: there is no list of messages.")
    fields = {name: value[name] for name in value if name not in ("id", "messages")}
    turns = []
    for number, message in enumerate(value["messages"], start=1):
        if not isinstance(message, dict) or not isinstance(message.get("id"), str):
            raise BadChat(f"Message {number} has no id.")
        parent = message.get("parent")
        turns.append(Turn(message["id"], parent, _without(message, "id", "parent")))
    return Chat(str(value.get("id") or ""), fields, turns)


def checked(chat: Chat) -> Chat:
    """The chat with values as rows take them, messages in their order. Raises BadChat."""
    if not chat.messages:
        raise BadChat("It has no messages.")
    if len(chat.messages) > MAX_MESSAGES:
        raise BadChat(f"It has more than {MAX_MESSAGES:,} messages.")
    chat.fields = _checked_fields(Conversation, chat.fields, "the chat", chat.notes)
    for turn in chat.messages:
        turn.fields = _checked_fields(Message, turn.fields, "a message", chat.notes)
        for name in ("role", "parts", "created_at"):
            if name not in turn.fields:
                raise BadChat(f"A message has no {name}.")
        _check_parts(turn.fields["parts"])
        if turn.fields.get("status") == MessageStatus.RUNNING:
            turn.fields["status"] = MessageStatus.STOPPED.value  # nobody writes it here
    chat.messages = _in_order(chat.messages)
    newest_choice = max(turn.fields.get("chosen", 0) for turn in chat.messages)
    chat.fields["version"] = max(chat.fields.get("version", 1), newest_choice)
    return chat


def _checked_fields(
    model: type[models.Model], fields: Json, what: str, notes: Counter[str]
) -> Json:
    known = portable_fields(model)
    result: Json = {}
    for name, value in fields.items():
        if name not in known:
            notes[f"the field {name[:40]}"] += 1
            continue
        try:
            result[name] = _checked(known[name], _storable(value, notes))
            if name in _CHECKS:
                result[name] = _CHECKS[name](result[name])
        except (BadFrame, BadRequest, ValidationError, TypeError, ValueError, OverflowError):
            raise BadChat(f"The {name} of {what} makes no sense.") from None
    return result


def _checked_parameters(value: Any) -> Json:
    return Parameters.model_validate(value).as_values()


def _checked_assistant(value: Any) -> Json | None:
    """As chat.personal.setup_of makes it."""
    if value is None:
        return None
    kinds = {"id": str, "name": str, "version": int}
    if (
        not isinstance(value, dict)
        or value.keys() != kinds.keys()
        or any(type(value[k]) is not kinds[k] for k in kinds)
    ):
        raise ValueError
    return dict(value)


# What later answers, and the page, rely upon.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "parameters": _checked_parameters,
    "assistant": _checked_assistant,
    "feedback": feedback.checked,
    "sources": named_in,
    "found": found_in,
    "left_out": facts.left_out_in,
    "error": facts.error_in,
    "from_cache": facts.from_cache_in,
    "usage": facts.usage_in,
    "timings": facts.timings_in,
    "version": facts.version_in,
    "chosen": facts.version_in,
}


def _checked(column: "models.Field[Any, Any]", value: Any) -> Any:
    if value is None:
        if not column.null:
            raise ValueError
        return None
    if isinstance(column, models.CharField | models.TextField) and not isinstance(value, str):
        raise ValueError
    value = column.to_python(value)
    if isinstance(value, datetime):
        value = facts.in_utc(value)
    if column.choices and value not in dict(column.flatchoices):
        raise ValueError
    column.run_validators(value)
    return value


def _storable(value: Any, notes: Counter[str]) -> Any:
    """Without the characters that Postgres has no place for."""
    if isinstance(value, str):
        if is_storable(value):
            return value
        notes["characters that cannot be stored"] += 1
        return storable(value)
    if isinstance(value, list):
        return [_storable(item, notes) for item in value]
    if isinstance(value, dict):
        return {_storable(key, notes): _storable(item, notes) for key, item in value.items()}
    return value


def _check_parts(parts: Any) -> None:
    if not isinstance(parts, list):
        raise BadChat("The parts of a message are no list.")
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        needed = _NEEDED_OF_PARTS.get(kind) if isinstance(kind, str) else None
        if needed is None:
            raise BadChat("A message has a part that is not known here.")
        if not all(isinstance(part.get(name), str) for name in needed):
            raise BadChat(f"A part of the type {kind} is not complete.")


_NEEDED_OF_PARTS = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool_call": ("id", "name", "arguments"),
    "tool_result": ("id", "content"),
}


def _in_order(turns: list[Turn]) -> list[Turn]:
    """By time, those of one moment as they came. Raises BadChat for what is no tree."""
    by_id = {turn.id: turn for turn in turns}
    if len(by_id) < len(turns):
        raise BadChat("Two messages have the same id.")
    children: dict[str | None, list[Turn]] = {}
    for turn in turns:
        if turn.parent is not None and turn.parent not in by_id:
            raise BadChat("A message follows one that is not there.")
        children.setdefault(turn.parent, []).append(turn)
    num_reached = 0
    todo = list(children.get(None, []))
    while todo:
        num_reached += 1
        todo += children.get(todo.pop().id, [])
    if num_reached < len(turns):
        raise BadChat("Its messages go round in a circle.")
    return sorted(turns, key=lambda turn: turn.fields["created_at"])


def content_hash(chat: Chat) -> str:
    """Of a checked chat: equal for the same tree of words, whatever the ids, titles and times."""
    places = {turn.id: place for place, turn in enumerate(chat.messages)}
    tree = [
        [places[turn.parent] if turn.parent is not None else None, turn.fields["role"],
         turn.fields["parts"]]
        for turn in chat.messages
    ]  # fmt: skip
    return sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def _without(value: Json, *names: str) -> Json:
    return {name: value[name] for name in value if name not in names}
