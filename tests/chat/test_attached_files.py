"""Files that were attached to messages go with the last message that names them, and not before."""

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone

from chat import library, tasks, tree
from chat.delete_all import delete_portion
from chat.library import Change
from chat.models import Conversation, Message, Role
from retrieval import collections, document_files, documents
from retrieval.documents import Brought
from retrieval.ids import uuid7
from retrieval.models import Collection, Document, Version
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(days=8)


@pytest.fixture
def mine(alice: "User", settings: Any, tmp_path: Any) -> Iterator["User"]:
    settings.DATA_DIR = tmp_path
    with as_user(alice.pk):
        yield alice


def bring(owner: "User", name: str, **how: bool) -> Document:
    brought = Brought(uuid7(), name, 1)
    document_files.path_of(brought.version_id).write_bytes(b"a")
    collection = collections.for_chats(owner)
    return documents.bring(owner, collection.pk, brought, is_new=True, **how)[0]


def attached(owner: "User", name: str = "a.txt") -> Document:
    return bring(owner, name, is_attached=True)


def asked_about(owner: "User", *rows: Document) -> Conversation:
    made = Conversation.objects.create(owner=owner, title="it")
    ask(made, *rows)
    return made


def ask(chat: Conversation, *rows: Document) -> Message:
    named = [{"id": str(row.pk), "name": row.name} for row in rows]
    sources = {"collections": [], "documents": named}
    return Message.objects.create(conversation=chat, role=Role.USER, text="?", sources=sources)


def delete(owner: "User", *chats: Conversation) -> None:
    library.change_all(owner, [Change(chat.pk, {"deleted": True}) for chat in chats])


def purge_all() -> None:
    with as_system():
        before = timezone.now() - tasks.KEEP_DELETED - timedelta(minutes=1)
        Conversation.objects.exclude(deleted_at=None).update(deleted_at=before)
        Message.with_deleted.exclude(deleted_at=None).update(deleted_at=before)
        tasks.purge_deleted()
        tasks.purge_deleted_messages()


def is_there(row: Document) -> bool:
    with as_system():
        return Document.objects.filter(pk=row.pk).exists()


def num_files() -> int:
    return len(list(document_files.folder().iterdir()))


def test_a_file_goes_with_its_chat_when_that_cannot_come_back(mine: "User") -> None:
    row = attached(mine)
    chat = asked_about(mine, row)
    delete(mine, chat)
    with as_system():
        tasks.purge_deleted()
    assert is_there(row)
    purge_all()
    assert not is_there(row)
    assert num_files() == 0
    assert collections.for_chats(mine).num_chunks == 0


def test_whoever_names_it_keeps_it(mine: "User") -> None:
    row = attached(mine)
    first, second = asked_about(mine, row), asked_about(mine, row)
    third = tree.branch_off(mine, first.messages.get().pk, "an-id")
    delete(mine, first, second)
    purge_all()
    assert is_there(row)
    delete(mine, third)
    with as_system():
        tasks.purge_deleted()
    assert is_there(row)  # that one can still come back, and names it
    purge_all()
    assert not is_there(row)


def test_what_was_brought_by_hand_stays(mine: "User", bob: "User") -> None:
    row = bring(mine, "mine.txt")
    with as_user(bob.pk):
        theirs = attached(bob)
    chat = asked_about(mine, row, theirs)
    with as_system():
        Document.objects.update(created_at=timezone.now() - LONG_AGO)
    delete(mine, chat)
    purge_all()
    assert is_there(row)
    delete_portion(mine)
    assert is_there(row)
    with as_system():
        tasks.sweep_files()
    assert is_there(row)


def test_a_deleted_message_takes_its_file_along(mine: "User") -> None:
    row, kept = attached(mine), attached(mine, "b.txt")
    chat = asked_about(mine, kept)
    last = Message.objects.create(
        conversation=chat,
        parent=chat.messages.get(),
        role=Role.USER,
        text="and?",
        sources={"collections": [], "documents": [{"id": str(row.pk), "name": row.name}]},
        deletion="one",
        deleted_at=timezone.now(),
    )
    with as_system():
        tasks.purge_deleted_messages()
    assert is_there(row)
    purge_all()
    assert not Message.with_deleted.filter(pk=last.pk).exists()
    assert not is_there(row)
    assert is_there(kept)


def test_all_chats_at_once(mine: "User", bob: "User") -> None:
    row = attached(mine)
    asked_about(mine, row)
    with as_user(bob.pk):
        theirs = attached(bob)
        asked_about(bob, theirs)
    asked_about(mine, theirs)  # an id alone gives nobody a right
    delete_portion(mine)
    assert not is_there(row)
    assert is_there(theirs)
    assert num_files() == 1


def test_what_was_never_sent_waits_for_a_week(mine: "User") -> None:
    unsent, new, sent = attached(mine), attached(mine, "b.txt"), attached(mine, "c.txt")
    deleted = attached(mine, "d.txt")
    asked_about(mine, sent)
    delete(mine, asked_about(mine, deleted))
    with as_system():
        old = Document.objects.exclude(pk=new.pk)
        old.update(created_at=timezone.now() - LONG_AGO)
        tasks.sweep_files()
    assert [is_there(row) for row in (unsent, new, sent, deleted)] == [False, True, True, True]
    assert num_files() == 3


def test_older_files_count_as_attached_where_a_message_names_them(mine: "User") -> None:
    named, in_bin, unnamed = (bring(mine, name) for name in ("a.txt", "b.txt", "c.txt"))
    notes = Collection.objects.create(owner=mine, name="Notes")
    elsewhere = documents.bring(mine, notes.pk, Brought(uuid7(), "d.txt", 1))[0]
    asked_about(mine, named, elsewhere)
    delete(mine, asked_about(mine, in_bin))
    with connection.cursor() as cursor:
        cursor.execute(import_module("chat.migrations.0032_attached_files")._MARK)
    with as_system():
        marked = set(Document.objects.filter(is_attached=True).values_list("pk", flat=True))
    assert marked == {named.pk, in_bin.pk}
    assert Version.objects.count() == 4
    assert unnamed.pk not in marked
