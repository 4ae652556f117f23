"""Batches of files are seen by whoever may read their collection, whatever the query says."""

import pytest
from django.db import ProgrammingError, connection, transaction

from retrieval.models import Access, Collection, FileBatch
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db


def seen_by(user: User) -> int:
    with as_user(user.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM retrieval_filebatch")
        return int(cursor.fetchone()[0])


def test_rows_are_seen_by_readers_and_written_by_writers(
    notes: Collection, alice: User, bob: User, charlie: User
) -> None:
    with as_user(alice.pk):
        FileBatch.objects.create(collection=notes)
        access = Access.objects.create(collection=notes, owner=alice, user=bob)
    assert [seen_by(user) for user in (alice, bob, charlie)] == [1, 1, 0]
    for user in (bob, charlie):
        with as_user(user.pk):
            assert FileBatch.objects.update(is_cancelled=True) == 0
            assert FileBatch.objects.all().delete()[0] == 0
            with pytest.raises(ProgrammingError, match="row-level"), transaction.atomic():
                FileBatch.objects.create(collection=notes)
    with as_user(alice.pk):
        access.may_write = True
        access.save()
    with as_user(bob.pk):
        assert FileBatch.objects.update(is_cancelled=True) == 1
    with as_user(alice.pk):
        access.delete()
    assert seen_by(bob) == 0
    with as_system():
        assert FileBatch.objects.count() == 1
