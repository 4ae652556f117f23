"""Whom a collection can be shared with, and which cannot be."""

from typing import TYPE_CHECKING

import pytest

from retrieval import collections, sharing
from retrieval.errors import Conflict, TooMany
from retrieval.models import Access, Collection
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def test_files_of_chats_are_not_shared(alice: "User", bob: "User") -> None:
    with as_user(alice.pk):
        own = collections.for_chats(alice)
        with pytest.raises(Conflict):
            sharing.share(alice, own.pk, email=bob.email, may_write=True)
        assert not sharing.may_be_shared(own)
        access = Access.objects.create(collection=own, owner=alice, user=bob)  # once it could be
        assert sharing.may_be_shared(own)
        sharing.unshare(alice, own.pk, access.pk)
        assert not sharing.may_be_shared(own)


def test_at_the_limit_an_access_can_still_be_changed(
    notes: Collection, alice: "User", bob: "User", charlie: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MAX_ACCESSES", 1)
    with as_user(alice.pk):
        sharing.share(alice, notes.pk, email=bob.email)
        assert sharing.share(alice, notes.pk, email=bob.email, may_write=True).may_write
        with pytest.raises(TooMany):
            sharing.share(alice, notes.pk, email=charlie.email)
    with as_system():
        assert Access.objects.get().may_write
