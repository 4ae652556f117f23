"""What a question is to be answered from: collections and documents that somebody picked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext

from chat import branches
from chat.branches import SHOWN_TO_MODELS
from chat.errors import BadFrame
from chat.models import Message, Role
from retrieval.errors import NotFound
from retrieval.models import Collection, Document

MAX_PICKED = 20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Picked:
    """Ids as a browser sends them."""

    collections: tuple[UUID, ...] = ()
    documents: tuple[UUID, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.collections or self.documents)

    def to_json(self) -> Json:
        """As `named`, without the names."""
        kinds = {"collections": self.collections, "documents": self.documents}
        return {kind: [{"id": str(id_)} for id_ in ids] for kind, ids in kinds.items()}


NOTHING = Picked()


@dataclass(frozen=True, slots=True)
class Sources:
    """What to look for, and where: in what was picked, and in the documents of questions before
    (`kept_along`). `earlier` are the questions before it, the last one last, and
    `last_answer` is what was said to that one; `standalone` is the question as it would be put by itself
    (rewriting.py), where that is known. `without` are passages that nobody wants, `first_number` is what
    the first excerpt is cited by."""

    question: str
    picked: Picked
    kept: tuple[UUID, ...] = ()
    earlier: tuple[str, ...] = ()
    last_answer: str = ""
    standalone: str = ""
    without: frozenset[int] = frozenset()
    first_number: int = 1


def named(picked: Picked) -> Json | None:
    """What was picked, with the names that it has now. In the scope of the user. Raises NotFound for
    what is not there, or may not be read; BadFrame for too much at once."""
    if not picked:
        return None
    if len(picked.collections) + len(picked.documents) > MAX_PICKED:
        text = gettext("At most %(n)s collections and documents can be picked for one message.")
        raise BadFrame(text % {"n": MAX_PICKED})
    return {
        "collections": _names(Collection, picked.collections, "collection"),
        "documents": _names(Document, picked.documents, "document"),
    }


def picked_of(value: Json | None) -> Picked:
    """The inverse of `named`."""
    if not value:
        return Picked()
    return Picked(
        tuple(UUID(one["id"]) for one in value["collections"]),
        tuple(UUID(one["id"]) for one in value["documents"]),
    )


def sources_along(path: Sequence[Message], without: Iterable[int] = ()) -> Sources | None:
    """What the last message of a path, a question, is to be answered from."""
    question = path[-1] if path else None
    if question is None:
        return None
    picked = picked_of(question.sources)
    kept = kept_along(path[:-1], picked)
    if not picked and not kept:
        return None
    numbers = [one["number"] for row in path if row.found for one in row.found["excerpts"]]
    told = _told(path[:-1])
    return Sources(
        question=question.text,
        picked=picked,
        kept=kept,
        earlier=tuple(row.text for row in told if row.role == Role.USER),
        last_answer=next((row.text for row in reversed(told) if row.role == Role.ASSISTANT), ""),
        without=frozenset(without),
        first_number=1 + max(numbers, default=0),
    )


def kept_along(path: Sequence[Message], picked: Picked) -> tuple[UUID, ...]:
    """Documents that questions before were answered from, those of the last one first: what was shown
    whole and stands in the prompt still is known, the others are searched again, as many as may be
    picked."""
    told = _told(path)
    founds = [row.found for row in _in_prompt(path) if row.found and _is_shown(row)]
    excerpts = [one for found in founds for one in found["excerpts"]]
    # Only excerpts that were searched for know the passages that they are made of.
    whole = (UUID(one["document"]) for one in excerpts if not one.get("chunks", True))
    known = {*picked.documents, *whole}
    # What answers name they have drawn.
    asked = [row for row in reversed(told) if row.role == Role.USER]
    before = [id_ for row in asked for id_ in picked_of(row.sources).documents]
    num = MAX_PICKED - len(picked.collections) - len(picked.documents)
    return tuple(id_ for id_ in dict.fromkeys(before) if id_ not in known)[: max(0, num)]


def _in_prompt(path: Sequence[Message]) -> Iterator[Message]:
    """What the model of the last answer was shown of a path. Pinned messages in front of that are not
    counted: they stay only while there is room."""
    rows = list(branches.let_through(path))
    answers = list(filter(_is_shown, rows))
    left_out = (answers[-1].left_out if answers else None) or {}
    before, stopped = left_out.get("before"), left_out.get("stopped", ())
    ids = [str(row.pk) for row in rows]
    start = ids.index(before) if before in ids else 0
    exchange, has_reply = "", True  # as history.exchanges_of
    for place, row in enumerate(rows):
        if row.role == Role.USER and has_reply:
            exchange, has_reply = ids[place], False
        elif _is_shown(row) and not row.deleted_at:
            has_reply = True
        if place >= start and exchange not in stopped and not row.deleted_at:
            yield row


def _is_shown(row: Message) -> bool:
    return row.role == Role.ASSISTANT and row.status in SHOWN_TO_MODELS


def _told(path: Sequence[Message]) -> list[Message]:
    return [row for row in branches.let_through(path) if not row.deleted_at]


def _names(kind: Any, ids: tuple[UUID, ...], noun: str) -> list[Json]:
    names = dict(kind.objects.filter(pk__in=ids).values_list("pk", "name"))
    if len(names) < len(set(ids)):
        raise NotFound(noun)
    return [{"id": str(id_), "name": names[id_]} for id_ in dict.fromkeys(ids)]
