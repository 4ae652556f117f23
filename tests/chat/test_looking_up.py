"""What is shown of documents has room for all of it, names and headings as well."""

from typing import TYPE_CHECKING

import pytest

from chat.document_prompt import text_of_rows
from chat.document_search import Search
from chat.looking_up import _select, passages_of
from chat.sources import Picked, Sources
from retrieval.models import Collection
from retrieval.scopes import SearchScope
from retrieval.searching import search
from tests.retrieval.conftest import Add, add, notes
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

__all__ = ["add", "notes"]
pytestmark = pytest.mark.django_db(transaction=True)
ROOM = 1000


def test_long_names_of_documents_take_room_too(alice: "User", notes: Collection, add: Add) -> None:
    for n in range(6):
        add(notes, f"The canary {n} sings.", name=f"{n} {'name ' * 45}.txt")
    with as_user(alice.pk):
        found = search("canary", [], SearchScope())
        sources = Sources("canary", Picked(collections=(notes.pk,)))
        shown = _select(sources, Search("canary", (), found), None, len, ROOM)
        assert len(text_of_rows(passages_of(shown.excerpts))) <= ROOM
        dropped = {one["dropped"] for one in shown.candidates}
    assert dropped == {None, "budget"}
