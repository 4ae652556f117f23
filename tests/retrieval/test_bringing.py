"""Files that are brought to a collection: how much room there is for them, and that they stay."""

import os
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from chat import file_store, vector_store_files, vector_stores
from chat.models import ApiFile
from chat.vector_store_files import _copy
from chat.vector_store_schemas import VectorStoreFileIn
from retrieval import collections, document_files, documents, room
from retrieval.documents import Brought
from retrieval.errors import BadValue, NoRoom, TooMany
from retrieval.ids import uuid7
from retrieval.models import Access, Collection, Document, Version, VersionState
from retrieval.room import room_for
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
        assert room_for(shared) == 100
        document, _ = documents.bring(charlie, shared.pk, Brought(uuid7(), "a.txt", 60))
        with pytest.raises(NoRoom):
            documents.bring(charlie, shared.pk, Brought(uuid7(), "b.txt", 60))
        with pytest.raises(NoRoom):
            documents.replace(charlie, document.pk, Brought(uuid7(), "a.txt", 60))
        assert not documents.documents_for(charlie).filter(name="alone.txt").exists()


def test_what_has_no_words_waits_for_nobody(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR = tmp_path
    with as_user(alice.pk):
        brought = Brought(uuid7(), "a.png", 1, media_type="image/png", has_words=False)
        document, version = documents.bring(alice, notes.pk, brought)
        assert version.state == VersionState.READY
        assert not documents.unfinished_in(notes).exists()
        assert documents.version_for(document).pk == version.pk


def test_a_next_version_takes_the_room_of_old_ones(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR, settings.MAX_DOCUMENTS_BYTES = tmp_path, 100

    def bring(size_bytes: int, sha256: str) -> Version:
        brought = Brought(uuid7(), "a.txt", size_bytes, sha256)
        document_files.path_of(brought.version_id).write_bytes(b"a")
        return documents.bring(alice, notes.pk, brought)[1]

    def finished(version: Version) -> Version:
        Version.objects.filter(pk=version.pk).update(state=VersionState.READY)
        version.document.live_version = version.pk
        version.document.save(update_fields=["live_version"])
        return version

    with as_user(alice.pk):
        old = [finished(bring(20, sha256)) for sha256 in ("1", "2", "3")]
        live = finished(bring(40, "4"))
        assert (room_for(notes), room_for(notes, live.document)) == (0, 60)
        assert bring(40, "4").pk == live.pk, "the same file takes no room"
        newest = bring(30, "5")
        kept = set(live.document.versions.values_list("pk", flat=True))
        assert kept == {old[2].pk, live.pk, newest.pk}
        assert not document_files.path_of(old[0].pk).exists()
        with pytest.raises(NoRoom):
            bring(31, "6")
        assert set(live.document.versions.values_list("pk", flat=True)) == kept
        assert document_files.path_of(old[2].pk).exists()
        with pytest.raises(NoRoom):
            documents.bring(alice, notes.pk, Brought(uuid7(), "b.txt", 11, "7"))


def test_a_full_collection_takes_next_versions(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(room, "MAX_DOCUMENTS", 1)
    with as_user(alice.pk):
        for number in (1, 2):
            _, version = documents.bring(alice, notes.pk, Brought(uuid7(), "a.txt", 1))
            assert version.number == number
        assert documents.replace(alice, version.document_id, Brought(uuid7(), "a.txt", 1))
        with pytest.raises(TooMany):
            documents.bring(alice, notes.pk, Brought(uuid7(), "b.txt", 1))


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


def test_documents_of_another_database_are_not_swept(
    db: None, settings: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What an environment without its DATABASE_URL finds has to be there when that is noticed."""
    settings.DATA_DIR = tmp_path

    def lay(number: int) -> None:
        for _ in range(number):
            path = document_files.path_of(uuid7())
            path.write_bytes(b"old")
            os.utime(path, (1, 1))

    lay(2)
    document_files.sweep()
    assert not list(document_files.folder().iterdir()), "a crash has left them"
    lay(3)
    document_files.sweep()
    assert len(list(document_files.folder().iterdir())) == 3
    assert "3 of 3 files of documents have no row" in caplog.text


@pytest.fixture
def files(alice: "User", settings: Any, tmp_path: Any) -> list[ApiFile]:
    """Three of Alice's, as /v1/files has them."""
    settings.DATA_DIR = tmp_path
    rows = [ApiFile(owner=alice, purpose="user_data", name=f"{n}.txt", size_bytes=1) for n in "abc"]
    with as_user(alice.pk):
        for row in ApiFile.objects.bulk_create(rows):
            file_store.path_of(row.pk).write_text(row.name)
    return rows


def wanted(files: list[ApiFile]) -> list[VectorStoreFileIn]:
    return [VectorStoreFileIn(file_id=f"file-{row.pk.hex}") for row in files]


def num_copies() -> int:
    return len(list(document_files.folder().iterdir()))


def test_files_are_copied_before_anybody_has_to_wait_for_it(
    notes: Collection, alice: "User", files: list[ApiFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_transaction: list[bool] = []

    def sha256(path: Any) -> str:
        in_transaction.append(connection.in_atomic_block)
        return str(path)[-32:]

    monkeypatch.setattr(vector_store_files, "_sha256", sha256)
    store = vector_stores.public_id(notes.pk)
    with as_user(alice.pk):
        batch, to_read = vector_store_files.create_batch(alice, store, wanted(files), "files")
        assert Document.objects.filter(batch=batch).count() == len(to_read) == 3
        assert in_transaction == [False] * 3
        assert vector_store_files.attach(alice, notes, wanted(files), "files") == []
        assert num_copies() == 3


def test_what_somebody_else_has_attached_meanwhile_is_not_copied_twice(
    notes: Collection, alice: "User", files: list[ApiFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = vector_store_files._known
    with as_user(alice.pk):
        vector_store_files.attach(alice, notes, wanted(files[:2]), "files")
        with monkeypatch.context() as patch:
            founds = iter([{}, known(notes, [row.pk for row in files])])
            patch.setattr(vector_store_files, "_known", lambda *_: next(founds))
            to_read = vector_store_files.attach(alice, notes, wanted(files), "files")
        assert (len(to_read), num_copies()) == (1, 3)
        monkeypatch.setattr(room, "MAX_DOCUMENTS", 1)
        Document.objects.filter(file_id=files[2].pk).delete()
        with pytest.raises(TooMany):
            vector_store_files.attach(alice, notes, wanted(files), "files")
        assert num_copies() == 3


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("C:\\temp\\a  b.txt", "a b.txt"),
        ("\u202efdp.exe\u202c", "fdp.exe"),
        ("Ma\u0308rz.pdf", "M\u00e4rz.pdf"),
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


def test_a_name_is_found_however_its_letters_are_composed(
    notes: Collection, alice: "User", settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR = tmp_path
    apart, composed = "Ma\u0308rz", "M\u00e4rz"
    with as_user(alice.pk):
        document, _ = documents.bring(alice, notes.pk, Brought(uuid7(), f"{apart}.txt", 1))
        again, version = documents.bring(alice, notes.pk, Brought(uuid7(), f"{composed}.txt", 1))
        assert (again.pk, version.number) == (document.pk, 2)
        older = Document.objects.create(collection=notes, name=f"{apart} before.txt")
        assert list(documents.called(Document.objects.all(), apart)) == [document, older]
        assert list(documents.called(Document.objects.all(), composed)) == [document]
        assert collections.create(alice, apart).name == composed
    assert documents.checked_tags([apart, composed]) == [composed]


@pytest.mark.parametrize("given", ["", "  ", "/", "..", "\u202e", "a\x00b", "\ud800"])
def test_a_name_of_nothing_is_none(given: str) -> None:
    with pytest.raises(BadValue):
        documents.checked_name(given)
