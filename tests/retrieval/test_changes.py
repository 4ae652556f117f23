"""Changes that meet a deletion, or a change of something else."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from chat import vector_store_files, vector_stores
from chat.api_errors import ApiError
from retrieval import collections, documents
from retrieval.documents import Brought
from retrieval.errors import NotFound
from retrieval.ids import uuid7
from retrieval.models import Collection, Document
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def document(notes: Collection, alice: "User", settings: Any, tmp_path: Any) -> Document:
    settings.DATA_DIR = tmp_path
    with as_user(alice.pk):
        return documents.bring(alice, notes.pk, Brought(uuid7(), "a.txt", 1))[0]


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Any) -> None:
    """As soon as the module has looked something up by this function."""
    look_up = getattr(module, name)

    def looked_up(*args: Any, **kwargs: Any) -> Any:
        found = look_up(*args, **kwargs)
        monkeypatch.setattr(module, name, look_up)
        with as_system():
            act()
        return found

    monkeypatch.setattr(module, name, looked_up)


def gone(row: Any) -> Callable[[], None]:
    def delete() -> None:
        type(row).objects.filter(pk=row.pk).delete()

    return delete


def test_what_is_deleted_while_it_is_changed_is_not_there(
    monkeypatch: pytest.MonkeyPatch, notes: Collection, document: Document, alice: "User"
) -> None:
    store, file = vector_stores.public_id(notes.pk), vector_store_files.public_file_id(document)
    with as_user(alice.pk):
        meanwhile(monkeypatch, vector_store_files, "find_file", gone(document))
        with pytest.raises(ApiError) as missing:
            vector_store_files.set_attributes(alice, store, file, {"year": 2024})
        assert missing.value.status == 404
        document.save(force_insert=True)
        meanwhile(monkeypatch, documents, "document_for", gone(document))
        with pytest.raises(NotFound):
            documents.change(alice, document.pk, name="b.txt")
        meanwhile(monkeypatch, collections, "own_collection_for", gone(notes))
        with pytest.raises(NotFound):
            collections.change(alice, notes.pk, name="Birds")
        notes.save(force_insert=True)
        meanwhile(monkeypatch, vector_stores, "find", gone(notes))
        with pytest.raises(NotFound):
            vector_stores.change(alice, store, {"metadata": {"of": "birds"}})


def test_who_changes_something_else_meanwhile_keeps_that(
    monkeypatch: pytest.MonkeyPatch, notes: Collection, document: Document, alice: "User"
) -> None:
    rows, own = Document.objects.filter(pk=document.pk), Collection.objects.filter(pk=notes.pk)
    store = vector_stores.public_id(notes.pk)
    with as_user(alice.pk):
        meanwhile(monkeypatch, documents, "document_for", lambda: rows.update(tags=["bird"]))
        changed = documents.change(alice, document.pk, name="b.txt")
        assert (changed.name, changed.tags) == ("b.txt", ["bird"])
        tell = lambda: own.update(description="Of birds.", name="Birds")  # noqa: E731
        meanwhile(monkeypatch, collections, "own_collection_for", tell)
        collections.change(alice, notes.pk, caches_answers=True)
        meanwhile(monkeypatch, vector_stores, "find", lambda: own.update(expires_after_days=3))
        vector_stores.change(alice, store, {"metadata": {"of": "birds"}})
        row = own.get()
    told = (row.name, row.description, row.caches_answers, row.expires_after_days, row.metadata)
    assert told == ("Birds", "Of birds.", True, 3, {"of": "birds"})
