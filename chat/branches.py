"""A conversation's rows as a tree: what is seen of it, and which branch is shown. Pure.

Of siblings the one with the highest `chosen` is shown. Answers that share it were asked for side by
side and wait for a choice: the first of them stands for all. Where nobody ever chose (all 0, as in chats
from elsewhere) the last one is shown. The browser's branches.js does the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from chat.models import Message, MessageStatus, Role

Children = dict[UUID | None, list[Message]]
UNSAID: dict[str, Any] = {
    "text": "",
    "parts": [],
    "error": None,
    "feedback": None,
    "sources": None,
    "found": None,
    "from_cache": None,
    "left_out": None,
}
"""Of a deleted message that keeps its place: nothing of what it said, or was asked and written from."""


def children_of(messages: Iterable[Message]) -> Children:
    """Siblings by their parent, in the order given; those of the first turn under None."""
    children: Children = defaultdict(list)
    for message in messages:
        children[message.parent_id].append(message)
    return children


def visible(
    messages: Iterable[Message], *, deleted_before: datetime | None = None
) -> list[Message]:
    """Without what is deleted. A deleted message with replies that are not stays as their place.

    `deleted_before`: what was deleted later counts as if it was not, since it may be restored.
    """
    rows = list(messages)
    by_id = {row.pk: row for row in rows}
    seen: set[UUID] = set()
    for row in rows:
        current = None if _is_deleted(row, deleted_before) else row
        while current is not None and current.pk not in seen:
            seen.add(current.pk)
            current = by_id.get(current.parent_id) if current.parent_id else None
    return [row for row in rows if row.pk in seen]


def _is_deleted(message: Message, before: datetime | None) -> bool:
    at = message.deleted_at
    return at is not None and (before is None or at < before)


def chosen_of(siblings: list[Message]) -> Message:
    """The sibling that is shown."""
    highest = max(row.chosen for row in siblings)
    tied = [row for row in siblings if row.chosen == highest]
    is_beside = highest > 0 and all(row.role == Role.ASSISTANT for row in tied)
    return tied[0] if is_beside else tied[-1]


def is_chosen(message: Message, siblings: Iterable[Message]) -> bool:
    """Whether a person has decided for this one; of those side by side nobody has yet."""
    return all(row.pk == message.pk or row.chosen < message.chosen for row in siblings)


def chosen_path(messages: Iterable[Message], *, through: UUID | None = None) -> list[Message]:
    """The branch that is shown, from the first message to its end; `through`: one that is in it."""
    rows = list(messages)
    held = {row.pk for row in path_to(rows, through)}
    children = children_of(rows)
    path: list[Message] = []
    while siblings := children.get(path[-1].pk if path else None):
        kept = next((row for row in siblings if row.pk in held), None)
        path.append(kept or chosen_of(siblings))
    return path


def path_to(messages: Iterable[Message], message_id: UUID | None) -> list[Message]:
    """The messages from the first to `message_id`."""
    by_id = {row.pk: row for row in messages}
    path: list[Message] = []
    current = by_id.get(message_id) if message_id else None
    while current is not None:
        path.append(current)
        current = by_id.get(current.parent_id) if current.parent_id else None
    return path[::-1]


def below(messages: Iterable[Message], message_id: UUID) -> list[Message]:
    """All replies to a message, and the replies to those."""
    children = children_of(messages)
    found: list[Message] = []
    todo = [message_id]
    while todo:
        replies = children.get(todo.pop(), [])
        found += replies
        todo += [reply.pk for reply in replies]
    return found


# --- what a model may be told ---------------------------------------------------------------------

SHOWN_TO_MODELS = (MessageStatus.COMPLETE, MessageStatus.STOPPED)
"""Answers; a model would take others for its own words."""


def let_through(path: Sequence[Message]) -> Iterator[Message]:
    """Without questions that a policy has stopped, or everything behind them would be stopped as well.
    The last one stays: it may be asked again."""
    for place, message in enumerate(path):
        answer = path[place + 1] if place + 1 < len(path) else None
        if not (_is_stopped(message) or (answer is not None and _is_stopped(answer))):
            yield message


def _is_stopped(answer: Message) -> bool:
    """Whether its question was not let through to a model. Copies of messages don't tell: there it is
    where nothing was said."""
    said = "output" if answer.text else "input"
    stage = (answer.error or {}).get("stage", said)
    return answer.status == MessageStatus.REFUSED and stage == "input"
