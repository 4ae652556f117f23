"""An export of somebody who has much: as many queries, and nothing of it done on the event loop."""

import asyncio
import threading
from typing import Any

import pytest

from chat.transfer import export
from chat.transfer.records import records_of
from retrieval.models import Collection, Document, Version
from tests.plans import queries
from webapp import own_data
from webapp.models import User
from webapp.tenancy import as_user

pytestmark = pytest.mark.django_db


def add_documents(user: User, number: int) -> None:
    collection = Collection.objects.create(owner=user, name=f"of {number}")
    for n in range(number):
        document = Document.objects.create(collection=collection, name=f"{n}.txt")
        for version in (2, 1):
            Version.objects.create(document=document, collection=collection, number=version)


def test_more_documents_are_no_more_queries_and_their_texts_stay_where_they_are(
    alice: User,
) -> None:
    asked = []
    with as_user(alice.pk):
        for number in (1, 5):
            add_documents(alice, number)
            with queries() as each:
                documents = dict(records_of(alice))["documents"]
            asked.append(len(each))
            assert not any('"retrieval_version"."text"' in one for one in each)
        assert len(documents) == 6
        assert all([v["number"] for v in one["versions"]] == [1, 2] for one in documents)
    assert asked[0] == asked[1]


def test_records_are_written_and_packed_off_the_event_loop(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()

    def noting(real: Any) -> Any:
        def called(*args: Any) -> Any:
            threads.add(threading.get_ident())
            return real(*args)

        return called

    monkeypatch.setattr(own_data, "_json", noting(own_data._json))
    monkeypatch.setattr(export._Pack, "put", noting(export._Pack.put))

    async def received() -> int:
        return sum([len(piece) async for piece in own_data._zipped(alice)])

    with as_user(alice.pk):
        assert asyncio.run(received()) > 0
    assert threads
    assert threading.get_ident() not in threads
