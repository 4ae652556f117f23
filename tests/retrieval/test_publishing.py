"""While passages are published their collection's row is locked, for seconds where they are many: nobody
who asks or brings something waits for that."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

from retrieval import collections, documents, expiry, indexing, sharing
from retrieval.documents import Brought
from retrieval.errors import NotFound
from retrieval.ids import uuid7
from retrieval.indexing import Passage, make_live
from retrieval.models import Chunk, Collection, Document, Term, Version
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Any, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


@contextmanager
def published(
    version: Version, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], "Future[None]"]]:
    """Within, a thread is in the middle of publishing; what is yielded lets it end."""
    has_begun, may_end = threading.Event(), threading.Event()
    count = indexing._count

    def waiting(*args: Any) -> None:
        has_begun.set()
        assert may_end.wait(20)
        count(*args)

    def work() -> None:
        try:
            with as_system():
                make_live(version, [Passage("The canary sings.", 0, 17)], None)
        finally:
            connection.close()

    monkeypatch.setattr(indexing, "_count", waiting)
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(work)
        assert has_begun.wait(10)

        def end() -> "Future[None]":
            may_end.set()
            return publishing

        try:
            yield end
        finally:
            may_end.set()


def a_version(collection: Collection, name: str = "birds.md") -> Version:
    with as_system():
        document = Document.objects.create(collection=collection, name=name)
        return Version.objects.create(document=document, collection=collection)


def without_waiting() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '2s'")


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    without_waiting()
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


def test_a_question_waits_for_nobody_who_publishes(
    notes: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_system():
        Collection.objects.update(last_active_at="2020-01-01T00:00Z")
    with as_user(notes.owner_id), published(a_version(notes), monkeypatch) as end:
        expiry.note_use([notes.pk])
        end().result()
        expiry.note_use([notes.pk])
        notes.refresh_from_db()
        assert notes.last_active_at.year > 2020, "noted by the next one"


def test_what_is_brought_waits_for_nobody_who_publishes(
    notes: Collection, alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    version = a_version(notes)
    with as_user(alice.pk), published(version, monkeypatch) as end:
        for name in (
            "fish.md",
            "birds.md",
        ):  # the other one is the next version of what is published
            documents.bring(alice, notes.pk, Brought(uuid7(), name, 3))
        end().result()
        version.document.refresh_from_db()
        assert version.document.live_version == version.pk
        assert version.document.versions.count() == 2


def test_a_collection_is_deleted_while_passages_are_published(
    notes: Collection, alice: "User"
) -> None:
    """Who publishes locks the collection first, and then the document; so must who deletes."""
    version = a_version(notes)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def publish() -> None:
        try:
            with as_system(), transaction.atomic():
                Collection.objects.select_for_update(no_key=True).get(pk=notes.pk)
                has_begun.set()
                may_go_on.wait(0.7)  # by now the deletion waits
                Document.objects.select_for_update(no_key=True).get(pk=version.document_id)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish)
        assert has_begun.wait(10)
        with as_user(alice.pk):
            collections.delete(alice, notes.pk)
            assert not Collection.objects.exists()
        publishing.result()


@pytest.mark.parametrize("how", ["bring", "bring_all", "replace"])
def test_what_comes_while_its_collection_is_deleted_finds_none(
    notes: Collection, alice: "User", how: str
) -> None:
    version = a_version(notes)
    has_begun = threading.Event()

    def delete() -> None:
        try:
            with as_user(alice.pk), transaction.atomic():
                collections.delete(alice, notes.pk)
                has_begun.set()
                threading.Event().wait(0.7)  # by now what comes waits
        finally:
            connection.close()

    file = Brought(uuid7(), "more.md", 3, "c")
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(delete)
        assert has_begun.wait(10)
        with as_user(alice.pk), pytest.raises(NotFound):
            if how == "bring":
                documents.bring(alice, notes.pk, file)
            elif how == "bring_all":
                documents.bring_all(alice, notes.pk, [file])
            else:
                documents.replace(alice, version.document_id, file)
        deleting.result()


def test_a_document_is_deleted_while_its_passages_are_published(
    notes: Collection, alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who deletes waits for the end of it, and finds more there than when they asked."""
    version = a_version(notes)
    with as_user(alice.pk), published(version, monkeypatch) as end:
        threading.Timer(0.7, end).start()  # by now the deletion waits
        documents.delete(alice, version.document_id)
        end().result()
    with as_system():
        notes.refresh_from_db()
        assert not Document.objects.exists()
        assert not Chunk.objects.exists()
        assert not Term.objects.exists(), "no word of it is left"
        assert (notes.num_chunks, notes.num_terms) == (0, 0)


def test_what_is_unshared_while_passages_are_published_counts_as_a_change_of_its_own(
    notes: Collection, alice: "User", bob: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that are kept are dropped where the version is another one."""
    with as_user(alice.pk):
        access = sharing.share(alice, notes.pk, email=bob.email)
        notes.refresh_from_db()
    version = a_version(notes)
    with as_user(alice.pk), published(version, monkeypatch) as end:
        threading.Timer(0.7, end).start()  # by now the other change waits
        sharing.unshare(alice, notes.pk, access.pk)
        end().result()
        before = notes.version
        notes.refresh_from_db()
        assert notes.version == before + 2
