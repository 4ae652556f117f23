"""Files that are brought to a collection: how much room there is for them, and that they stay."""

import os
from typing import TYPE_CHECKING, Any

import pytest

from chat.vector_store_files import _copy
from retrieval import document_files, documents
from retrieval.documents import Brought
from retrieval.errors import BadValue, NoRoom
from retrieval.ids import uuid7
from retrieval.models import Access, Collection
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def test_who_writes_for_somebody_has_the_room_that_they_have_left(
    notes: Collection, alice: "User", charlie: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR, settings.MAX_DOCUMENTS_BYTES = tmp_path, 1000
    with as_user(alice.pk):
        documents.bring(alice, notes.pk, Brought(uuid7(), "alone.txt", 900))
        shared = Collection.objects.create(owner=alice, name="Shared")
        Access.objects.create(collection=shared, owner=alice, user=charlie, may_write=True)
    with as_user(charlie.pk):
        assert documents.room_for(charlie, shared) == 100
        document, _ = documents.bring(charlie, shared.pk, Brought(uuid7(), "a.txt", 60))
        with pytest.raises(NoRoom):
            documents.bring(charlie, shared.pk, Brought(uuid7(), "b.txt", 60))
        with pytest.raises(NoRoom):
            documents.replace(charlie, document.pk, Brought(uuid7(), "a.txt", 60))
        assert not documents.documents_for(charlie).filter(name="alone.txt").exists()


def test_an_old_file_that_is_being_attached_is_not_swept(
    db: None, settings: Any, tmp_path: Any
) -> None:
    """Its row comes last, when all files of a batch are copied; a link is as old as what it leads to."""
    settings.DATA_DIR = tmp_path
    source = tmp_path / "source"
    source.write_bytes(b"of last week")
    os.utime(source, (1, 1))
    target = document_files.path_of(uuid7())
    _copy(source, target)
    document_files.sweep()
    assert target.read_bytes() == b"of last week"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("C:\\temp\\a  b.txt", "a b.txt"),
        ("\u202efdp.exe\u202c", "fdp.exe"),
        ("a\u200bb\u2066.md", "ab.md"),
        ("\u0645\u06cc\u200c\u062e.txt", "\u0645\u06cc\u200c\u062e.txt"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_a_name_is_what_is_seen_of_it(given: str, kept: str) -> None:
    assert documents.checked_name(given) == kept


def test_pages_of_one_name_from_two_addresses_are_documents_of_their_own(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR = tmp_path
    with as_user(alice.pk):

        def brought(address: str) -> tuple[Any, int]:
            given = Brought(uuid7(), "index.html", 3, source_url=address)
            document, version = documents.bring(alice, notes.pk, given)
            assert document.source_url == address
            return document.pk, version.number

        first, second = brought("https://a.example/"), brought("https://b.example/")
        by_hand = brought("")
        assert len({first, second, by_hand}) == 3
        assert [brought(f"https://{name}.example/") for name in "ab"] == [
            (first[0], 2),
            (second[0], 2),
        ]
        assert brought("") == (by_hand[0], 2)


def test_files_of_a_deep_folder_are_documents_of_their_own(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR = tmp_path
    folders = documents.FOLDER.join(f"Folder {n} of a project" for n in range(20))
    with as_user(alice.pk):
        for name in ("offer.pdf", "contract.pdf"):
            given = Brought(uuid7(), f"{folders}{documents.FOLDER}{name}", 3)
            document, version = documents.bring(alice, notes.pk, given)
            assert version.number == 1, "no version of its neighbour"
            assert document.name.startswith("…")
            assert document.name.endswith(f"Folder 19 of a project › {name}")
            assert len(document.name) == documents.MAX_NAME_CHARS


@pytest.mark.parametrize("given", ["", "  ", "/", "..", "\u202e", "a\x00b", "\ud800"])
def test_a_name_of_nothing_is_none(given: str) -> None:
    with pytest.raises(BadValue):
        documents.checked_name(given)
