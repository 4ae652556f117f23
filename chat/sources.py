"""What a question is to be answered from: collections and documents that somebody picked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext

from chat import branches
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


NOTHING = Picked()


@dataclass(frozen=True, slots=True)
class Sources:
    """What to look for, and where. `earlier` are the questions before it, the last one last, and
    `last_answer` is what was said to that one; `standalone` is the question as it would be put by itself
    (rewriting.py), where that is known. `without` are passages that nobody wants, `first_number` is what
    the first excerpt is cited by."""

    question: str
    picked: Picked
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
    picked = picked_of(question.sources) if question is not None else Picked()
    if question is None or not picked:
        return None
    numbers = [one["number"] for row in path if row.found for one in row.found["excerpts"]]
    told = [row for row in branches.let_through(path[:-1]) if not row.deleted_at]
    return Sources(
        question=question.text,
        picked=picked,
        earlier=tuple(row.text for row in told if row.role == Role.USER),
        last_answer=next((row.text for row in reversed(told) if row.role == Role.ASSISTANT), ""),
        without=frozenset(without),
        first_number=1 + max(numbers, default=0),
    )


def _names(kind: Any, ids: tuple[UUID, ...], noun: str) -> list[Json]:
    names = dict(kind.objects.filter(pk__in=ids).values_list("pk", "name"))
    if len(names) < len(set(ids)):
        raise NotFound(noun)
    return [{"id": str(id_), "name": names[id_]} for id_ in dict.fromkeys(ids)]
