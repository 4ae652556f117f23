"""What is shown of documents: what was picked by name, then what fits, and room for all of it."""

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from chat import looking_up, shielded
from chat.document_prompt import text_of_rows
from chat.document_search import Search
from chat.events import Found
from chat.looking_up import _select, look_up, most_tokens, passages_of
from chat.models import Message, MessageStatus, Role
from chat.sources import MAX_PICKED, Picked, Sources, kept_along, sources_along
from chat.temporary import rows_of, said_of
from inference import Caller
from retrieval.expiry import note_use
from retrieval.indexing import Passage, make_live
from retrieval.models import Collection, Document, Version
from retrieval.scopes import SearchScope
from retrieval.searching import search
from tests.retrieval.conftest import Add, add, notes
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

__all__ = ["add", "notes"]
pytestmark = pytest.mark.django_db(transaction=True)
ROOM = 1000


def a_document(collection: Collection, name: str, *texts: str) -> Document:
    """Live, each text a passage of it."""
    with as_system():
        document = Document.objects.create(collection=collection, name=name)
        text = "\n".join(texts)
        version = Version.objects.create(document=document, collection=collection, text=text)
        starts = [sum(len(one) + 1 for one in texts[:n]) for n in range(len(texts))]
        pairs = zip(starts, texts, strict=True)
        make_live(version, [Passage(one, at, at + len(one)) for at, one in pairs], None)
    return document


def looked_up(sources: Sources, room: int = ROOM) -> Found:
    """By their words alone, with a character for a token."""
    found = asyncio.run(look_up(sources, Caller("alice"), len, room))
    assert found is not None
    assert len(text_of_rows(passages_of(found))) <= room
    return found


def names_in(found: Found) -> set[str]:
    return {one["name"] for one in found.excerpts}


def test_long_names_of_documents_take_room_too(alice: "User", notes: Collection, add: Add) -> None:
    for n in range(6):
        add(notes, f"The canary {n} sings.", name=f"{n} {'name ' * 45}.txt")
    with as_user(alice.pk):
        found = search("canary", [], SearchScope())
        sources = Sources("canary", Picked(collections=(notes.pk,)))
        shown = _select(sources, Search("canary", (), found), None, len, ROOM)
        assert shown is not None
        assert len(text_of_rows(passages_of(shown))) <= ROOM
        dropped = {one["dropped"] for one in shown.candidates}
    assert dropped == {None, "budget"}


def test_what_is_attached_is_shown_beside_what_a_collection_says(
    alice: "User", notes: Collection
) -> None:
    with as_user(alice.pk):
        elsewhere = Collection.objects.create(owner=alice, name="Chats")
    attached = a_document(elsewhere, "letter.txt", "The heron asks for leave.", "It is ill.")
    a_document(notes, "rules.txt", "The crane grants leave.")
    picked = Picked(collections=(notes.pk,), documents=(attached.pk,))
    with as_user(alice.pk):
        found = looked_up(Sources("The crane grants leave?", picked))
        assert names_in(found) == {"letter.txt", "rules.txt"}
        assert "It is ill." in passages_of(found)[1]
        assert [one["number"] for one in found.excerpts] == [1, 2, 3]
        alone = looked_up(Sources("Summarise this", picked))
        assert alone.is_whole
        assert names_in(alone) == {"letter.txt"}
        both = Picked(collections=(elsewhere.pk,), documents=(attached.pk,))
        twice = looked_up(Sources("Who asks for leave?", both))
        assert len(twice.excerpts) == 2
        assert most_tokens(picked, (), ROOM) == ROOM


def test_a_passage_that_is_shown_without_its_overlap_is_on_the_page_where_it_begins(
    alice: "User", notes: Collection
) -> None:
    text = "One.\n\nTwo.\n\nThree."
    pages = [[0, 6, "i"], [6, 12, "ii"], [12, len(text), ""]]
    with as_system():
        document = Document.objects.create(collection=notes, name="birds.pdf")
        version = Version.objects.create(
            document=document, collection=notes, text=text, pages=pages
        )
        spans = [
            (0, 10, 1, 2),
            (6, 18, 2, 3),
            (12, 18, 3, 3),
        ]  # each with the end of the one before
        passages = [Passage(text[a:b], a, b, first, last) for a, b, first, last in spans]
        make_live(version, passages, None)
    with as_user(alice.pk):
        found = looked_up(Sources("Summarise this", Picked(documents=(document.pk,))))
    shown = [(text[one["start"] : one["end"]], one["page_label"]) for one in found.excerpts]
    assert shown == [("One.\n\nTwo.", "i"), ("Three.", "3")]
    assert [(one["first_page"], one["last_page"]) for one in found.excerpts] == [(1, 2), (3, 3)]


def test_of_what_was_picked_it_is_told_what_could_not_be_looked_at(
    alice: "User", notes: Collection
) -> None:
    with as_system():
        unread = [Document.objects.create(collection=notes, name=f"{n}.pdf") for n in range(3)]
        for one, state in zip(unread, ("parsing", "queued", "failed"), strict=True):
            Version.objects.create(document=one, collection=notes, state=state)
    ids = tuple(one.pk for one in unread)
    with as_user(alice.pk):
        found = looked_up(Sources("What?", Picked(documents=ids)), 400)
        assert (found.num_waiting, found.num_failed) == (2, 1)
        assert passages_of(found) == (
            "(No passage fits the question.)",
            "(Of the documents that were picked, 2 have not been read yet.)",
            "(Of the documents that were picked, 1 could not be read.)",
        )
        assert Found.from_kept(found.kept()) == replace(found, candidates=())
        large = a_document(notes, "large.txt", *("The adder sleeps." for _ in range(50)))
        both = Picked(documents=(*ids, large.pk))
        shown = looked_up(Sources("Who sleeps?", both), 700)
        assert shown.excerpts
        assert passages_of(shown)[-2:] == passages_of(found)[-2:]
        assert most_tokens(Picked(documents=ids), (), ROOM) >= len(text_of_rows(passages_of(found)))


def test_of_a_large_document_that_nothing_fits_parts_are_shown(
    alice: "User", notes: Collection
) -> None:
    words = ("adder", "bison", "civet", "dingo", "eland")
    texts = [f"Number {n}: the {words[n % 5]} sleeps. ".ljust(100, ".") for n in range(100)]
    large = a_document(notes, "report.txt", *texts)
    other = a_document(notes, "other.txt", *texts)
    question = "Summarise this document"
    with as_user(alice.pk):
        found = looked_up(Sources(question, Picked(documents=(large.pk,))), 2_000)
        shown = text_of_rows(passages_of(found))
        assert len(shown) > 1_500
        assert "Number 0:" in shown
        assert shown.count("Only parts of this document are shown") == 1
        starts = [one["start"] for one in found.excerpts]
        assert starts == sorted(starts)
        assert starts[-1] > 7_000
        assert not any(one["dropped"] for one in found.candidates)
        fitting = looked_up(Sources("The adder sleeps?", Picked(documents=(large.pk,))), 2_000)
        assert not any(one["is_sample"] for one in fitting.excerpts)
        two = Sources(question, Picked(documents=(large.pk, other.pk)))
        assert names_in(looked_up(two, 2_000)) == {"report.txt", "other.txt"}
        of_collection = looked_up(Sources(question, Picked(collections=(notes.pk,))), 2_000)
        assert of_collection.excerpts == ()
        assert looked_up(Sources(question, Picked(documents=(large.pk,))), 320).excerpts == ()


def test_a_document_that_is_asked_about_keeps_its_collection(
    alice: "User", notes: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody waits until that is noted."""
    is_found, has_waited = threading.Event(), []

    def note_later(ids: Iterable[UUID]) -> None:
        has_waited.append(is_found.wait(10))
        note_use(ids)

    async def ask() -> None:
        sources = Sources("Who asks?", Picked(documents=(document.pk,)))
        assert await look_up(sources, Caller("alice"), len, ROOM)
        is_found.set()
        await asyncio.gather(*shielded._unended)

    monkeypatch.setattr(looking_up, "note_use", note_later)
    document = a_document(notes, "letter.txt", "The heron asks for leave.")
    with as_system():
        Collection.objects.update(last_active_at="2020-01-01T00:00Z")
    with as_user(alice.pk):
        asyncio.run(ask())
        assert has_waited == [True]
        notes.refresh_from_db()
        assert notes.last_active_at.year > 2020


def question(text: str, *documents: Document) -> Message:
    picked = Picked(documents=tuple(one.pk for one in documents))
    return Message(role=Role.USER, text=text, sources=picked.to_json() if picked else None)


def answer(found: Found, status: MessageStatus = MessageStatus.COMPLETE) -> Message:
    value = {"query": found.query, "excerpts": list(found.excerpts), "is_whole": found.is_whole}
    return Message(role=Role.ASSISTANT, status=status, text="Aha.", found=value)


def test_a_file_that_was_searched_is_searched_for_the_next_question_too(
    alice: "User", notes: Collection
) -> None:
    small = a_document(notes, "small.txt", "The heron asks for leave.")
    large = a_document(
        notes, "large.txt", *(f"Bird {n}: a wren. ".ljust(99, ".") for n in range(90))
    )
    with as_user(alice.pk):
        first = question("Which bird is number 7?", small, large)
        found = looked_up(Sources(first.text, Picked(documents=(large.pk,))))
        told = answer(found)
        second = sources_along([first, told, question("And bird 61?")])
        assert second is not None
        assert second.kept == (small.pk, large.pk)
        assert "Bird 61:" in text_of_rows(passages_of(looked_up(second)))
        thanks = sources_along([first, told, question("Gracias")])
        assert thanks is not None
        assert asyncio.run(look_up(replace(thanks, earlier=()), Caller("alice"), len, ROOM)) is None
        whole = looked_up(Sources("What?", Picked(documents=(small.pk,))))
        path = [question("What?", small), answer(whole), question("And then?")]
        assert sources_along(path) is None
        path[1] = answer(whole, MessageStatus.FAILED)
        assert kept_along(path, Picked()) == (small.pk,)
        assert kept_along([first, told], Picked(documents=(large.pk,) * MAX_PICKED)) == ()
        assert 0 < most_tokens(Picked(), (large.pk,), ROOM) == ROOM
        said = [
            {"role": "user", "parts": [{"type": "text", "text": row.text}], "sources": row.sources}
            for row in (first, question("And bird 61?"))
        ]
        page = {"role": "assistant", "parts": [], "found": told.found}
        of_page = sources_along(rows_of(said_of([said[0], page, said[1]])))
        assert of_page is not None
        assert of_page.kept == (small.pk, large.pk)


def test_a_file_that_has_left_the_prompt_is_searched_again(
    alice: "User", notes: Collection
) -> None:
    first_file, second_file = (
        a_document(notes, name, f"The {name} asks for leave.") for name in ("heron", "crane")
    )
    with as_user(alice.pk):
        path: list[Message] = []
        for document in (first_file, second_file):
            asked = question("What?", document)
            path += [asked, answer(looked_up(Sources("What?", Picked(documents=(document.pk,)))))]
    nothing = {"num_messages": 0, "summary": None, "stopped": []}
    for left_out, kept in (
        (None, ()),
        ({**nothing, "before": str(path[0].pk)}, ()),
        ({**nothing, "before": str(path[2].pk)}, (first_file.pk,)),
        ({**nothing, "before": str(path[0].pk), "stopped": [str(path[2].pk)]}, (second_file.pk,)),
        ({**nothing, "before": str(uuid4())}, ()),
    ):
        path[-1].left_out = left_out
        assert kept_along(path, Picked()) == kept, left_out
    path[-1].left_out = {**nothing, "before": str(path[2].pk)}
    again = [*path, question("And then?"), answer(Found("And then?"), MessageStatus.FAILED)]
    assert kept_along(again, Picked()) == (first_file.pk,)
