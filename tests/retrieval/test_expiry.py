"""Collections for a time: used they stay, else their documents go with passages and files."""

from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval import document_files, documents, expiry
from retrieval.documents import Brought
from retrieval.errors import Conflict
from retrieval.ids import uuid7
from retrieval.models import Chunk, Collection, Document, Version
from tests.retrieval.conftest import Add
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db


def unused_for(row: Collection, **time: float) -> None:
    with as_system():
        rows = Collection.objects.filter(pk=row.pk)
        rows.update(last_active_at=timezone.now() - timedelta(**time), expires_after_days=7)


def test_what_nobody_uses_goes_with_its_files(notes: Collection, alice: User, add: Add) -> None:
    with as_user(alice.pk):
        other = Collection.objects.create(owner=alice, name="Kept")
    for row in (notes, other):
        add(row, "pears")
    with as_system():
        versions = {one.collection_id: one.pk for one in Version.objects.all()}
        for version_id in versions.values():
            document_files.path_of(version_id).write_text("pears")
        unused_for(notes, days=7, seconds=1)
        unused_for(other, days=6.9)
        expiry.drop_expired()
        assert [one.collection_id for one in Document.objects.all()] == [other.pk]
        assert [one.collection_id for one in Chunk.objects.all()] == [other.pk]
    assert not document_files.path_of(versions[notes.pk]).exists()
    assert document_files.path_of(versions[other.pk]).exists()
    document_files.remove(versions[other.pk])
    with as_user(alice.pk):
        notes.refresh_from_db()
    assert expiry.is_expired(notes)


def test_a_reader_keeps_it_alive(notes: Collection, bob: User) -> None:
    unused_for(notes, days=6)
    with as_user(bob.pk):  # who may read it by what is asked before
        expiry.note_use([notes.pk])
        assert not Collection.objects.filter(pk=notes.pk).exists(), (
            "and has no more rights after it"
        )
    with as_system():
        notes.refresh_from_db()
    assert notes.last_active_at > timezone.now() - timedelta(minutes=1)
    assert not expiry.is_expired(notes)


def test_what_has_expired_does_not_come_back(notes: Collection) -> None:
    unused_for(notes, days=8)
    with as_system():
        expiry.note_use([notes.pk])
        notes.refresh_from_db()
    assert expiry.is_expired(notes)


def test_nothing_is_brought_to_what_has_expired(notes: Collection, alice: User, add: Add) -> None:
    """It would be taken, read and found, and gone within the hour."""
    document = add(notes, "pears")
    unused_for(notes, days=8)
    brought = Brought(uuid7(), "apples.txt", 6)
    with as_user(alice.pk):
        for bring in (
            lambda: documents.bring(alice, notes.pk, brought),
            lambda: documents.bring_all(alice, notes.pk, [brought]),
            lambda: documents.replace(alice, document.pk, brought),
        ):
            with pytest.raises(Conflict):
                bring()
    with as_system():
        unused_for(notes, days=6)
    with as_user(alice.pk):
        assert documents.bring(alice, notes.pk, brought)


def test_without_a_time_it_stays(notes: Collection, alice: User) -> None:
    with as_user(alice.pk):
        Collection.objects.filter(pk=notes.pk).update(
            last_active_at=timezone.now() - timedelta(days=900)
        )
        notes.refresh_from_db()
    assert expiry.expires_at(notes) is None
    assert not expiry.is_expired(notes)
