"""/v1/vector_stores with OpenAI's client and the real engine: filled, searched, shared, emptied."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import openai
import pytest

from tests.chat.api_caller import Caller
from tests.chat.test_documents import a_collection, hits, ready, upload, visiting
from tests.chat.test_limits import a_key
from tests.chat.test_openai_files import a_client
from tests.openai_description import check, needs_description
from tests.sites import Site, email_of

pytestmark = needs_description

FEATURES = ["api_keys", "files"]
BIRDS = "# Birds\n\nThe zanzibar canary weighs ninety grams.\n"
FISH = "# Fish\n\nThe pike of the northern lake is longer than a metre.\n"
STONES = "# Stones\n\nGranite is made of quartz, feldspar and mica.\n"


@pytest.fixture(scope="module")
def owner(chat_site: Site) -> Iterator[openai.OpenAI]:
    with a_client(chat_site, a_key(chat_site, name="vs-alice", features=FEATURES)) as client:
        yield client


@pytest.fixture(scope="module")
def charlie(chat_site: Site) -> Iterator[openai.OpenAI]:
    with a_client(chat_site, a_key(chat_site, name="vs-charlie", features=FEATURES)) as client:
        yield client


@pytest.fixture(scope="module")
def raw(chat_site: Site, owner: openai.OpenAI) -> Caller:
    return Caller(chat_site, owner.api_key)


def a_file(client: openai.OpenAI, text: str | bytes, name: str = "text.md") -> str:
    data = text.encode() if isinstance(text, str) else text
    return client.files.create(file=(name, data), purpose="assistants").id


def on_disk(site: Site) -> set[str]:
    folder = site.data_dir / "documents"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def settled(client: openai.OpenAI, store: str) -> openai.types.VectorStore:
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        found = client.vector_stores.retrieve(store)
        if found.status == "completed":
            return found
        time.sleep(0.1)
    raise TimeoutError(found)


@pytest.fixture(scope="module")
def filled(owner: openai.OpenAI) -> dict[str, str]:
    """For all tests that only read."""
    return a_filled_store(owner)


def a_filled_store(owner: openai.OpenAI) -> dict[str, str]:
    """A store with three files, which have attributes; `store` and their names are keys."""
    store = owner.vector_stores.create(name="Nature")
    ids = {"store": store.id}
    for name, text, attributes in (
        ("birds.md", BIRDS, {"kind": "animal", "year": 2024, "final": True}),
        ("fish.md", FISH, {"kind": "animal", "year": 2025.5}),
        ("stones.md", STONES, {"kind": "mineral", "year": 2026, "final": False}),
    ):
        ids[name] = a_file(owner, text, name)
        done = owner.vector_stores.files.create_and_poll(
            ids[name],
            vector_store_id=store.id,
            attributes=attributes,  # type: ignore[arg-type]
            poll_interval_ms=100,
        )
        assert done.status == "completed"
    return ids


# --- from end to end --------------------------------------------------------------------------------


def test_a_file_is_uploaded_attached_found_and_gone(owner: openai.OpenAI, chat_site: Site) -> None:
    before = on_disk(chat_site)
    file_id = a_file(owner, BIRDS, "birds.md")
    store = owner.vector_stores.create(
        name="Birds", description="Of all sorts", metadata={"a": "b"}
    )
    check(store.to_dict(), "VectorStoreObject")
    assert (store.name, store.metadata, store.file_counts.total) == ("Birds", {"a": "b"}, 0)
    assert store.expires_at is None
    done = owner.vector_stores.files.create_and_poll(
        file_id, vector_store_id=store.id, poll_interval_ms=100
    )
    check(done.to_dict(), "VectorStoreFileObject")
    assert (done.id, done.status, done.last_error) == (file_id, "completed", None)
    assert done.usage_bytes == len(BIRDS)
    page = owner.vector_stores.search(store.id, query="how heavy is the canary?")
    (hit,) = page.data
    check(hit.to_dict(), "VectorStoreSearchResultItem")
    assert (hit.file_id, hit.filename) == (file_id, "birds.md")
    assert "ninety grams" in hit.content[0].text
    assert 0.3 < hit.score <= 1
    content = owner.vector_stores.files.content(file_id, vector_store_id=store.id)
    assert [part.text for part in content.data] == [BIRDS.strip()]
    now = owner.vector_stores.retrieve(store.id)
    assert (now.status, now.usage_bytes, now.file_counts.completed) == ("completed", len(BIRDS), 1)
    assert len(on_disk(chat_site) - before) == 1
    gone = owner.vector_stores.files.delete(file_id, vector_store_id=store.id)
    check(gone.to_dict(), "DeleteVectorStoreFileResponse")
    assert owner.vector_stores.search(store.id, query="canary").data == []
    assert on_disk(chat_site) == before
    assert owner.files.retrieve(file_id).filename == "birds.md", "it stays where it came from"
    deleted = owner.vector_stores.delete(store.id)
    check(deleted.to_dict(), "DeleteVectorStoreResponse")
    with pytest.raises(openai.NotFoundError):
        owner.vector_stores.retrieve(store.id)


def test_a_store_may_be_made_of_files_at_once(owner: openai.OpenAI, chat_site: Site) -> None:
    before = on_disk(chat_site)
    ids = [a_file(owner, text) for text in (BIRDS, FISH)]
    store = owner.vector_stores.create(
        file_ids=[*ids, ids[0]],
        chunking_strategy={
            "type": "static",
            "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0},
        },
    )
    assert store.name.startswith("Vector store 2")
    assert store.file_counts.total == 2
    assert settled(owner, store.id).file_counts.completed == 2
    listed = list(owner.vector_stores.files.list(store.id, order="asc"))
    assert [one.id for one in listed] == ids
    for one in listed:
        check(one.to_dict(), "VectorStoreFileObject")
        assert one.chunking_strategy is not None
        assert one.chunking_strategy.type == "static"
    owner.files.delete(ids[1])  # what is in the store is a copy
    assert owner.vector_stores.search(store.id, query="pike").data[0].file_id == ids[1]
    with pytest.raises(openai.NotFoundError) as caught:
        owner.vector_stores.create(name="Never", file_ids=[ids[0], f"file-{'0' * 32}"])
    assert caught.value.param == "file_ids"
    assert "Never" not in [one.name for one in owner.vector_stores.list()]
    owner.vector_stores.delete(store.id)
    assert on_disk(chat_site) == before


def test_the_sizes_of_chunks_are_as_asked(owner: openai.OpenAI) -> None:
    text = " ".join(f"Sentence number {n} speaks of the lake." for n in range(200))
    file_id = a_file(owner, text)
    found = {}
    for size, overlap in ((100, 0), (100, 50), (200, 0)):
        store = owner.vector_stores.create(name="Sizes")
        owner.vector_stores.files.create_and_poll(
            file_id,
            vector_store_id=store.id,
            poll_interval_ms=100,
            chunking_strategy={
                "type": "static",
                "static": {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap},
            },
        )
        hits = owner.vector_stores.search(store.id, query="lake", max_num_results=50).data
        found[size, overlap] = len(hits)
        owner.vector_stores.delete(store.id)
    assert found[200, 0] < found[100, 0] < found[100, 50]


def test_a_file_is_in_a_store_once_and_is_read_anew_where_it_is_due(owner: openai.OpenAI) -> None:
    store = owner.vector_stores.create(name="Once").id
    file_id = a_file(owner, BIRDS)
    files = owner.vector_stores.files

    def attach(**more: Any) -> openai.types.vector_stores.VectorStoreFile:
        return files.create_and_poll(file_id, vector_store_id=store, poll_interval_ms=100, **more)

    first = attach(attributes={"a": 1})
    again = attach(attributes={"a": 2})
    assert (first.id, again.attributes) == (again.id, {"a": 2.0})
    sizes = {"max_chunk_size_tokens": 150, "chunk_overlap_tokens": 10}
    cut = attach(chunking_strategy={"type": "static", "static": sizes})
    assert cut.chunking_strategy.static.max_chunk_size_tokens == 150  # type: ignore[union-attr]
    assert cut.status == "completed"
    assert len(owner.vector_stores.search(store, query="canary").data) == 1
    assert len(list(files.list(store))) == 1
    broken = a_file(owner, b"%PDF-1.7 nonsense", "broken.pdf")
    for _ in range(2):
        failed = files.create_and_poll(broken, vector_store_id=store, poll_interval_ms=100)
        check(failed.to_dict(), "VectorStoreFileObject")
        assert failed.status == "failed"
        assert failed.last_error is not None
        assert failed.last_error.message.endswith(".")
    counts = owner.vector_stores.retrieve(store).file_counts
    assert (counts.completed, counts.failed, counts.total) == (1, 1, 2)
    assert [one.id for one in files.list(store, filter="failed")] == [broken]
    assert [one.id for one in files.list(store, filter="completed")] == [file_id]
    assert list(files.list(store, filter="in_progress")) == []
    content = files.content(broken, vector_store_id=store)
    assert content.data == []


# --- the search -------------------------------------------------------------------------------------


def names(
    owner: openai.OpenAI, ids: dict[str, str], query: Any = "nature", **more: Any
) -> set[str]:
    page = owner.vector_stores.search(ids["store"], query=query, **more)
    return {hit.filename for hit in page.data}


def eq(key: str, value: Any, kind: str = "eq") -> dict[str, Any]:
    return {"type": kind, "key": key, "value": value}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (eq("kind", "animal"), {"birds.md", "fish.md"}),
        (eq("kind", "animal", "ne"), {"stones.md"}),
        (eq("year", 2025, "gt"), {"fish.md", "stones.md"}),
        (eq("year", 2024, "lte"), {"birds.md"}),
        (eq("final", True), {"birds.md"}),
        (eq("kind", ["mineral", "plant"], "in"), {"stones.md"}),
        (eq("year", [2024, 2026], "nin"), {"fish.md"}),
        ({"type": "and", "filters": [eq("kind", "animal"), eq("year", 2025, "lt")]}, {"birds.md"}),
        (
            {
                "type": "or",
                "filters": [
                    eq("final", False),
                    {"type": "and", "filters": [eq("final", True), eq("year", 2024)]},
                ],
            },
            {"birds.md", "stones.md"},
        ),
        (eq("kind", "plant"), set()),
        (eq("nobody's", "x"), set()),
        (eq("\x00", "\x00"), set()),
    ],
)
def test_filters(
    owner: openai.OpenAI, filled: dict[str, str], filters: Any, wanted: set[str]
) -> None:
    assert names(owner, filled, filters=filters) == wanted


def test_the_best_comes_first_and_by_how_much(owner: openai.OpenAI, filled: dict[str, str]) -> None:
    search = owner.vector_stores.search
    page = search(filled["store"], query="what is granite made of?")
    scores = [hit.score for hit in page.data]
    assert page.data[0].filename == "stones.md"
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert page.data[0].attributes == {"kind": "mineral", "year": 2026, "final": False}
    above = search(
        filled["store"],
        query="what is granite made of?",
        ranking_options={"score_threshold": (scores[0] + scores[1]) / 2},
    )
    assert [hit.filename for hit in above.data] == ["stones.md"]
    none = search(
        filled["store"], query="stock exchange rules", ranking_options={"score_threshold": 0.5}
    )
    assert none.data == []
    assert len(search(filled["store"], query="nature", max_num_results=1).data) == 1


def test_several_queries_are_asked_at_once(owner: openai.OpenAI, filled: dict[str, str]) -> None:
    page = owner.vector_stores.search(
        filled["store"],
        query=["weight of the canary", "granite and quartz"],
        rewrite_query=True,
        max_num_results=2,
        ranking_options={"ranker": "none"},
    )
    assert {hit.filename for hit in page.data} == {"birds.md", "stones.md"}


def test_the_page_is_as_published(raw: Caller, filled: dict[str, str]) -> None:
    page = raw.post(f"/vector_stores/{filled['store']}/search", {"query": "pike"}).json()
    check(page, "VectorStoreSearchResultsPage")
    assert page["search_query"] == ["pike"]
    content = raw.get(f"/vector_stores/{filled['store']}/files/{filled['fish.md']}/content").json()
    check(content, "VectorStoreFileContentResponse")


def test_attributes_are_changed_and_found_by(owner: openai.OpenAI) -> None:
    store = owner.vector_stores.create(name="Changing").id
    file_id = a_file(owner, FISH)
    owner.vector_stores.files.create_and_poll(
        file_id, vector_store_id=store, attributes={"old": True}, poll_interval_ms=100
    )
    changed = owner.vector_stores.files.update(
        file_id, vector_store_id=store, attributes={"new": "x"}
    )
    assert changed.attributes == {"new": "x"}
    check(changed.to_dict(), "VectorStoreFileObject")
    assert names(owner, {"store": store}, "pike", filters=eq("new", "x")) == {"text.md"}
    assert names(owner, {"store": store}, "pike", filters=eq("old", True)) == set()
    cleared = owner.vector_stores.files.update(file_id, vector_store_id=store, attributes=None)
    assert cleared.attributes == {}


# --- batches ----------------------------------------------------------------------------------------


def test_a_batch_of_files(owner: openai.OpenAI) -> None:
    store = owner.vector_stores.create(name="Batches").id
    good, bad = a_file(owner, BIRDS), a_file(owner, b"%PDF-1.7 nonsense", "broken.pdf")
    batches = owner.vector_stores.file_batches
    batch = batches.create_and_poll(store, file_ids=[good, bad, good], poll_interval_ms=100)
    check(batch.to_dict(), "VectorStoreFileBatchObject")
    counts = batch.file_counts
    assert (batch.status, counts.completed, counts.failed, counts.total) == ("completed", 1, 1, 2)
    listed = batches.list_files(batch.id, vector_store_id=store)
    assert {one.id for one in listed.data} == {good, bad}
    done = batches.list_files(batch.id, vector_store_id=store, filter="completed")
    assert [one.id for one in done.data] == [good]
    third = a_file(owner, STONES)
    own = batches.create_and_poll(
        store,
        files=[{"file_id": third, "attributes": {"kind": "mineral"}}],
        poll_interval_ms=100,
    )
    assert own.file_counts.completed == 1
    found = owner.vector_stores.files.retrieve(third, vector_store_id=store)
    assert found.attributes == {"kind": "mineral"}
    assert batches.retrieve(own.id, vector_store_id=store).id == own.id
    for wrong in (f"vsfb_{'0' * 32}", "nonsense", own.id + "0"):
        with pytest.raises(openai.NotFoundError):
            batches.retrieve(wrong, vector_store_id=store)
    shouted = f"file-{good.removeprefix('file-').upper()}"
    twice = batches.create(store, file_ids=[good, shouted])
    assert twice.file_counts.total == 1, "the same id in another spelling"
    other = owner.vector_stores.create(name="Other").id
    with pytest.raises(openai.NotFoundError):
        batches.retrieve(own.id, vector_store_id=other)


def test_a_batch_is_cancelled(owner: openai.OpenAI) -> None:
    """What is read by then stays, the rest is cancelled and can be attached anew."""
    store = owner.vector_stores.create(name="Cancelled").id
    text = " ".join(f"Sentence number {n} speaks of the lake." for n in range(800))
    ids = [a_file(owner, f"{text} {n}", f"{n}.txt") for n in range(4)]
    batches = owner.vector_stores.file_batches
    batch = batches.create(store, file_ids=ids)
    assert batch.status == "in_progress"
    cancelled = batches.cancel(batch.id, vector_store_id=store)
    check(cancelled.to_dict(), "VectorStoreFileBatchObject")
    assert cancelled.status == "cancelled"
    assert cancelled.file_counts.in_progress == 0
    assert cancelled.file_counts.cancelled > 0
    time.sleep(2)  # a worker that was at it must not bring it back
    assert batches.retrieve(batch.id, vector_store_id=store).file_counts == cancelled.file_counts
    gone = owner.vector_stores.files.list(store, filter="cancelled").data
    assert len(gone) == cancelled.file_counts.cancelled
    assert gone[0].last_error is None
    again = owner.vector_stores.files.create_and_poll(
        gone[0].id, vector_store_id=store, poll_interval_ms=100
    )
    assert again.status == "completed"
    owner.vector_stores.delete(store)


# --- lists, changes, ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_store_is_emptied_page_by_page(chat_site: Site, order: Any) -> None:
    with a_client(chat_site, a_key(chat_site, features=FEATURES)) as client:
        store = client.vector_stores.create(name="Full").id
        files = [a_file(client, f"text {n}") for n in range(5)]
        for file_id in reversed(files):  # in another order than they were brought
            client.vector_stores.files.create(store, file_id=file_id)
        for file in client.vector_stores.files.list(store, limit=2, order=order):
            client.vector_stores.files.delete(file.id, vector_store_id=store)
        assert not client.vector_stores.files.list(store).data
        assert len(client.files.list().data) == len(files), "the files themselves stay"


def test_lists_are_told_in_pages(chat_site: Site) -> None:
    with a_client(chat_site, a_key(chat_site, features=FEATURES)) as client:
        empty = client.vector_stores.list()
        check(empty.to_dict(), "ListVectorStoresResponse")
        ids = [client.vector_stores.create(name=str(n)).id for n in range(5)]
        newest = ids[::-1]
        assert [one.id for one in client.vector_stores.list(limit=2)] == newest, "page by page"
        assert [one.id for one in client.vector_stores.list(order="asc", limit=3)] == ids
        page = client.vector_stores.list(limit=2, after=newest[0])
        check(page.to_dict(), "ListVectorStoresResponse")
        assert ([one.id for one in page.data], page.has_more) == (newest[1:3], True)
        before = client.vector_stores.list(limit=2, before=newest[3])
        assert [one.id for one in before.data] == newest[1:3]
        assert before.has_more
        first = client.vector_stores.list(limit=2, before=newest[2], order="desc")
        assert ([one.id for one in first.data], first.has_more) == (newest[0:2], False)
        files = [a_file(client, f"text {n}") for n in range(4)]
        for file_id in files:
            client.vector_stores.files.create(ids[0], file_id=file_id)
        listed = client.vector_stores.files.list(ids[0], limit=3)
        check(listed.to_dict(), "ListVectorStoreFilesResponse")
        assert ([one.id for one in listed.data], listed.has_more) == (files[:0:-1], True)
        rest = client.vector_stores.files.list(ids[0], limit=3, after=listed.data[-1].id)
        assert [one.id for one in rest.data] == files[:1]
        with pytest.raises(openai.BadRequestError):
            client.vector_stores.files.list(ids[1], after=files[0])  # it never was in this one
        for wrong in ({"limit": 0}, {"limit": 101}, {"after": "nonsense"}, {"order": "up"}):
            with pytest.raises(openai.BadRequestError) as caught:
                client.vector_stores.list(extra_query=wrong)
            assert caught.value.param == next(iter(wrong))
        with pytest.raises(openai.BadRequestError) as caught:
            client.vector_stores.files.list(ids[0], extra_query={"filter": "lost"})
        assert caught.value.param == "filter"


def test_a_store_is_changed(owner: openai.OpenAI) -> None:
    store = owner.vector_stores.create(name="Before", metadata={"a": "b"})
    days = {"anchor": "last_active_at", "days": 3}
    changed = owner.vector_stores.update(store.id, name="After", expires_after=days)  # type: ignore[arg-type]
    check(changed.to_dict(), "VectorStoreObject")
    assert (changed.name, changed.metadata) == ("After", {"a": "b"})
    assert changed.expires_at == changed.last_active_at + 3 * 86400  # type: ignore[operator]
    again = owner.vector_stores.update(store.id, expires_after=None, metadata={})
    assert (again.name, again.expires_at, again.metadata) == ("After", None, {})
    assert owner.vector_stores.retrieve(store.id).name == "After"


def test_an_expired_store_is_closed(owner: openai.OpenAI, chat_site: Site) -> None:
    days = {"anchor": "last_active_at", "days": 1}
    store = owner.vector_stores.create(name="Old", expires_after=days).id  # type: ignore[arg-type]
    file_id = a_file(owner, BIRDS)
    owner.vector_stores.files.create_and_poll(file_id, vector_store_id=store, poll_interval_ms=100)
    chat_site.execute(
        "UPDATE retrieval_collection SET last_active_at = now() - interval '25 hours' WHERE id = %s",
        store.removeprefix("vs_"),
    )
    assert owner.vector_stores.retrieve(store).status == "expired"
    for closed in (
        lambda: owner.vector_stores.search(store, query="canary"),
        lambda: owner.vector_stores.files.create(store, file_id=file_id),
        lambda: owner.vector_stores.update(store, name="Young"),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            closed()
        assert caught.value.code == "vector_store_expired"
    owner.vector_stores.delete(store)


# --- who may ----------------------------------------------------------------------------------------

DOORS = [
    ("GET", ""),
    ("POST", ""),
    ("DELETE", ""),
    ("POST", "/search"),
    ("GET", "/files"),
    ("POST", "/files"),
    ("GET", "/files/{file}"),
    ("POST", "/files/{file}"),
    ("DELETE", "/files/{file}"),
    ("GET", "/files/{file}/content"),
    ("POST", "/file_batches"),
    ("GET", "/file_batches/{batch}"),
    ("POST", "/file_batches/{batch}/cancel"),
    ("GET", "/file_batches/{batch}/files"),
]


def body_of(path: str, file_id: str) -> dict[str, Any]:
    if path.endswith("/search"):
        return {"query": "canary"}
    if path.endswith("/files"):
        return {"file_id": file_id}
    if path.endswith("/file_batches"):
        return {"file_ids": [file_id]}
    return {"attributes": {}} if "/files/" in path else {"name": "x"} if not path else {}


def test_who_has_no_right_finds_nothing_and_opens_nothing(
    owner: openai.OpenAI, charlie: openai.OpenAI, chat_site: Site
) -> None:
    filled = a_filled_store(owner)
    batch = owner.vector_stores.file_batches.create(filled["store"], file_ids=[filled["fish.md"]])
    own_file = a_file(charlie, "planted")
    missing = f"vs_{'0' * 32}"
    for method, path in DOORS:
        path = path.format(file=filled["fish.md"], batch=batch.id)
        answers = []
        for store in (filled["store"], missing):
            response = charlie.with_options(max_retries=0)._client.request(
                method,
                f"{chat_site.url}/v1/vector_stores/{store}{path}",
                headers={"Authorization": f"Bearer {charlie.api_key}"},
                json=body_of(path, own_file) if method == "POST" else None,
            )
            assert response.status_code == 404, (method, path)
            answers.append(response.text.replace(store, ""))
        assert answers[0] == answers[1], "as missing as none"
    assert filled["store"] not in [one.id for one in charlie.vector_stores.list()]
    with pytest.raises(openai.NotFoundError) as caught:
        charlie.vector_stores.create(name="Mine", file_ids=[filled["fish.md"]])
    assert caught.value.param == "file_ids"
    mine = charlie.vector_stores.create(name="Mine")
    for attach in (
        lambda: charlie.vector_stores.files.create(mine.id, file_id=filled["fish.md"]),
        lambda: charlie.vector_stores.file_batches.create(mine.id, file_ids=[filled["fish.md"]]),
        lambda: charlie.vector_stores.files.retrieve(filled["fish.md"], vector_store_id=mine.id),
    ):
        with pytest.raises(openai.NotFoundError):
            attach()
    assert charlie.vector_stores.search(mine.id, query="pike").data == []


def test_it_is_the_collection_that_people_see(chat_site: Site) -> None:
    """Both doors lead to the same, and sharing holds at both."""
    with visiting(chat_site, "vs-owner") as person, visiting(chat_site, "vs-reader"):
        client = a_client(chat_site, chat_site.create_api_key(email_of("vs-owner")))
        reader = a_client(chat_site, chat_site.create_api_key(email_of("vs-reader")))
        collection = a_collection(person, "Shared")
        document = upload(person, collection, BIRDS).json()["id"]
        ready(person, document)
        with closing(client), closing(reader):
            store = f"vs_{collection.replace('-', '')}"
            (file,) = client.vector_stores.files.list(store)
            check(file.to_dict(), "VectorStoreFileObject")
            assert file.id == f"file-{document.replace('-', '')}"
            assert client.vector_stores.search(store, query="canary").data[0].file_id == file.id
            fish = a_file(client, FISH, "fish.md")
            client.vector_stores.files.create_and_poll(
                fish, vector_store_id=store, poll_interval_ms=100
            )
            assert hits(person, "northern pike", collections=[collection])[0]["name"] == "fish.md"
            with pytest.raises(openai.NotFoundError):
                reader.vector_stores.retrieve(store)
            access = person.post(
                f"/api/collections/{collection}/accesses", json={"email": email_of("vs-reader")}
            ).json()["id"]
            assert reader.vector_stores.retrieve(store).name == "Shared"
            assert reader.vector_stores.search(store, query="pike").data[0].file_id == fish
            theirs = a_file(reader, STONES)
            for change in (
                lambda: reader.vector_stores.files.create(store, file_id=theirs),
                lambda: reader.vector_stores.files.delete(fish, vector_store_id=store),
                lambda: reader.vector_stores.update(store, name="Mine"),
                lambda: reader.vector_stores.delete(store),
            ):
                with pytest.raises(openai.PermissionDeniedError):
                    change()
            person.delete(f"/api/collections/{collection}/accesses/{access}")
            with pytest.raises(openai.NotFoundError):
                reader.vector_stores.search(store, query="pike")


def test_a_plan_without_files_and_a_key_without_knowledge(chat_site: Site) -> None:
    with a_client(chat_site, a_key(chat_site, features=["api_keys"])) as client:
        with pytest.raises(openai.PermissionDeniedError):
            client.vector_stores.create(name="x")
        assert list(client.vector_stores.list()) == []
    chat_site.sign_up("vs-narrow").close()
    narrow = chat_site.create_api_key(email_of("vs-narrow"), "files")
    with a_client(chat_site, narrow) as client, pytest.raises(openai.PermissionDeniedError):
        client.vector_stores.list()


# --- what is wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("", {"name": "x" * 121}, "name"),
        ("", {"name": "\ud800"}, "name"),
        ("", {"name": 5}, "name"),
        ("", {"nonsense": 1}, "nonsense"),
        ("", {"description": "x" * 2001}, "description"),
        ("", {"metadata": {"a": 5}}, "metadata.a"),
        ("", {"metadata": {f"{n}": "x" for n in range(17)}}, "metadata"),
        ("", {"file_ids": ["file-x"] * 501}, "file_ids"),
        ("", {"expires_after": {"anchor": "created_at", "days": 1}}, "expires_after.anchor"),
        ("", {"expires_after": {"anchor": "last_active_at", "days": 0}}, "expires_after.days"),
        ("", {"expires_after": {"anchor": "last_active_at", "days": 366}}, "expires_after.days"),
        ("", {"chunking_strategy": {"type": "other"}}, "chunking_strategy.type"),
        ("", {"chunking_strategy": {"type": "static"}}, "chunking_strategy"),
        ("/files", {}, "file_id"),
        ("/files", {"file_id": "FILE", "attributes": {"a": [1]}}, "attributes"),
        ("/files", {"file_id": "FILE", "attributes": {"a": None}}, "attributes"),
        ("/files", {"file_id": "FILE", "attributes": {"a": "x" * 513}}, "attributes"),
        ("/files", {"file_id": "FILE", "attributes": {"x" * 65: 1}}, "attributes"),
        ("/files", {"file_id": "FILE", "attributes": {f"{n}": n for n in range(17)}}, "attributes"),
        ("/files/FILE", {}, "attributes"),
        ("/file_batches", {}, "file_ids"),
        ("/file_batches", {"file_ids": []}, "file_ids"),
        ("/file_batches", {"file_ids": ["a"], "files": [{"file_id": "a"}]}, "file_ids"),
        ("/file_batches", {"file_ids": ["a"] * 2001}, "file_ids"),
        ("/file_batches", {"files": [{"file": "a"}]}, "files.0.file_id"),
        ("/search", {}, "query"),
        ("/search", {"query": ""}, "query"),
        ("/search", {"query": []}, "query"),
        ("/search", {"query": [""]}, "query.0"),
        ("/search", {"query": "x" * 10_001}, "query"),
        ("/search", {"query": "x", "max_num_results": 0}, "max_num_results"),
        ("/search", {"query": "x", "max_num_results": 51}, "max_num_results"),
        (
            "/search",
            {"query": "x", "ranking_options": {"score_threshold": 2}},
            "ranking_options.score_threshold",
        ),
        ("/search", {"query": "x", "filters": {"type": "like"}}, "filters.type"),
        ("/search", {"query": "x", "filters": {"type": "eq", "key": "a"}}, "filters"),
        ("/search", {"query": "x", "filters": eq("a", [1])}, "filters"),
        ("/search", {"query": "x", "filters": eq("a", 1, "in")}, "filters"),
        ("/search", {"query": "x", "filters": eq("a", {"b": 1})}, "filters"),
        ("/search", {"query": "x", "filters": eq("a", None)}, "filters"),
        ("/search", {"query": "x", "filters": eq("a", list(range(101)), "in")}, "filters"),
        ("/search", {"query": "x", "filters": {"type": "and"}}, "filters"),
        (
            "/search",
            {"query": "x", "filters": {"type": "or", "filters": [{"type": "eq", "key": 1}]}},
            "filters.filters.0.key",
        ),
        (
            "/search",
            {"query": "x", "filters": {"type": "and", "filters": [eq("a", 1)] * 101}},
            "filters",
        ),
    ],
)
def test_what_is_wrong_is_named(
    raw: Caller, filled: dict[str, str], path: str, body: dict[str, Any], param: str
) -> None:
    path = path.replace("FILE", filled["fish.md"])
    if body.get("file_id") == "FILE":
        body = {**body, "file_id": filled["fish.md"]}
    store = f"/{filled['store']}" if path else ""
    response = raw.post(f"/vector_stores{store}{path}", body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("size", "overlap", "param"),
    [
        (99, 0, "chunking_strategy.static.max_chunk_size_tokens"),
        (4097, 0, "chunking_strategy.static.max_chunk_size_tokens"),
        (100, 51, "chunking_strategy.static"),
        (100, -1, "chunking_strategy.static.chunk_overlap_tokens"),
    ],
)
def test_wrong_sizes_are_named(
    raw: Caller, filled: dict[str, str], size: int, overlap: int, param: str
) -> None:
    sizes = {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap}
    body = {
        "file_id": filled["fish.md"],
        "chunking_strategy": {"type": "static", "static": sizes},
    }
    response = raw.post(f"/vector_stores/{filled['store']}/files", body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_filters_within_filters_have_an_end(raw: Caller, filled: dict[str, str]) -> None:
    deep = (
        '{"type": "and", "filters": [' * 300 + '{"type": "eq", "key": "a", "value": 1}' + "]}" * 300
    )
    body = f'{{"query": "x", "filters": {deep}}}'
    response = raw.post(f"/vector_stores/{filled['store']}/search", body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "filters")


@pytest.mark.parametrize("id_", ["vs_", "nonsense", f"vs_{'g' * 32}", f"vs_{'0' * 33}", "vs_%00"])
def test_nonsense_is_as_missing_as_an_unknown_id(raw: Caller, id_: str) -> None:
    assert raw.get(f"/vector_stores/{id_}").status_code == 404
    assert raw.post(f"/vector_stores/{id_}/search", {"query": "x"}).status_code == 404


def test_a_file_twice_at_once_is_there_once(raw: Caller, owner: openai.OpenAI) -> None:
    store, file_id = owner.vector_stores.create(name="Twice").id, a_file(owner, STONES)
    with ThreadPoolExecutor(4) as pool:
        path, body = f"/vector_stores/{store}/files", {"file_id": file_id}
        answers = list(pool.map(lambda _: raw.post(path, body), range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["id"] for answer in answers} == {file_id}
    assert owner.vector_stores.retrieve(store).file_counts.total == 1
